// A program of a user in CommonJS, without a build: `require` of the package and of its other entries.
const { connect, job, serve } = require("pawl");
const { connect: connectServer } = require("pawl/client");
const { testPawl } = require("pawl/testing");

const url = process.env.APP_DATABASE;
const greet = job({ name: "greet", run: (_ctx, { name }) => `hello ${name}` });

async function main() {
  const logged = [typeof connectServer, typeof testPawl].filter((type) => type !== "function");
  const log = (_fields, text) => logged.push(text);
  const logger = { debug() {}, info() {}, warn: log, error: log };
  const worker = serve([greet], { url, lease: "5m", heartbeat: "50ms", logger });
  await worker.ready;
  const pawl = connect(url, { logger });
  const { runId } = await pawl.start(greet, { name: "bundle" });
  console.log(JSON.stringify({ result: await pawl.result(runId), logged }));
  process.stdin.resume().once("end", () => void Promise.all([worker.stop(), pawl.close()]));
}
void main();
