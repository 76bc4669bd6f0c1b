/** The actions of the page as a command, a request and a program, to copy. Pure but for the address. */

import { base, token } from "../api/client.js";
import { cli, shellWord } from "../format/command.js";

export interface Ways {
  readonly cli: string;
  readonly curl: string;
  readonly typescript: string;
}

function curl(method: string, path: string, body?: unknown): string {
  const url = new URL(base + path, location.origin).href;
  return [
    "curl",
    ...(method === "GET" ? [] : [`-X ${method}`]),
    shellWord(url),
    ...(token.value === null ? [] : [`-H "authorization: Bearer $PAWL_TOKEN"`]),
    ...(body === undefined
      ? []
      : ["-H 'content-type: application/json'", `-d ${shellWord(JSON.stringify(body))}`]),
  ].join(" ");
}

const program = (...lines: readonly string[]): string =>
  ['import { connect } from "pawl";', "", "const pawl = connect();", ...lines].join("\n");

const literal = (value: unknown): string => JSON.stringify(value, null, 2) ?? "undefined";

export const signalWays = (runId: string, name: string, payload: unknown): Ways => ({
  cli: cli("runs", "signal", runId, name, JSON.stringify(payload)),
  curl: curl("POST", `v1/runs/${runId}/signals/${encodeURIComponent(name)}`, payload),
  typescript: program(
    `await pawl.signal(${JSON.stringify(runId)}, ${JSON.stringify(name)}, ${literal(payload)});`,
  ),
});

export const cancelCommand = (runId: string, reason: string, cascade: boolean): string =>
  cli(
    "runs",
    "cancel",
    runId,
    ...(cascade ? ["--cascade"] : []),
    ...(reason === "" ? [] : ["--reason", reason]),
  );

export const startWays = (name: string, input: unknown): Ways => ({
  cli: cli("runs", "start", name, JSON.stringify(input ?? null)),
  curl: curl("POST", `v1/workflows/${encodeURIComponent(name)}/runs`, { input }),
  typescript: program(`const { runId } = await pawl.start(${JSON.stringify(name)}, ${literal(input)});`),
});

export const readWays = (runId: string): Ways => ({
  cli: cli("runs", "show", runId),
  curl: curl("GET", `v1/runs/${runId}`),
  typescript: program(`const run = await pawl.runs.get(${JSON.stringify(runId)});`),
});
