/** Which operating system users can run a server, from which projects, on which directories. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { startLocalPostgres } from "../dist/index.js";
import {
  isGone,
  isRoot,
  query,
  runCommand,
  stopAtEnd,
  temporaryBase,
  temporaryDirectory,
  until,
  userOf,
} from "./observe.js";
import { installProject, type Project } from "./project.js";
import { packageModule, UserProcess, type UserSettings } from "./user-process.js";

const nobody = 65_534;
const daemon = 1;
/** Numbers that no system gives to anybody. */
const isServersOwn = (uid: number): boolean => uid >= 60_706 && uid <= 61_183;
const withoutEntry = 12_345;

if (!isRoot) console.log("not root: the tests that change the user are skipped; all others run as this user");

/** Prints the user that root would choose for a new server. */
const showIdentity = [
  process.execPath,
  "--input-type=module",
  "--eval",
  `import { serverIdentity } from ${JSON.stringify(join(dirname(packageModule), "identity.js"))};
   console.log(JSON.stringify(serverIdentity(undefined)));`,
];

let readable: Project | undefined;

/**
 * A project that every user can read, wherever this repository is (below a home that only its owner
 * enters, say).
 */
function readableProject(): Project {
  return (readable ??= installProject(temporaryDirectory(0o755), { withBinaries: true }));
}

/**
 * Starts a server as somebody, sees it answer, and lets it go. Answers with the user who ran it.
 */
async function runServer(options: object, settings: UserSettings): Promise<number> {
  const user = new UserProcess(options, { ...settings, afterwards: "stop" });
  const server = await user.started();
  const runner = userOf(server.pid);
  if (isRoot) expect(await query(server.url, "select 1")).toEqual([[1]]);
  user.child.stdin?.end();
  await user.ended();
  await until("the server is gone", () => isGone(server));
  return runner;
}

it.concurrent("an install with --ignore-scripts runs: the missing library links are made", async () => {
  const project = installProject(temporaryDirectory(0o755), { withBinaries: true });
  expect(readdirSync(project.libraries)).not.toContain("libpq.so.5");
  await runServer({}, project);
  if (process.platform === "linux") expect(readdirSync(project.libraries)).toContain("libpq.so.5");
});

it.concurrent("a server never runs as root", async () => {
  const server = stopAtEnd(await startLocalPostgres());
  expect(userOf(server.pid)).not.toBe(0);
});

describe.skipIf(!isRoot)("for root", () => {
  it.concurrent("a project that only root can read is served from a copy of its binaries", async () => {
    const project = installProject(temporaryDirectory(0o700), { withBinaries: true });
    expect(await runServer({}, project)).toSatisfy(isServersOwn);
    const cached = readdirSync(join(temporaryBase, "pawl-postgres-cache-0"));
    expect(cached.filter((name) => name.startsWith("native-"))).toHaveLength(1);
    await runServer({}, project); // the second time from the cache
  });

  it.concurrent("a persistent directory below a home that only root can enter is served", async () => {
    const home = temporaryDirectory(0o700);
    const server = stopAtEnd(await startLocalPostgres({ directory: join(home, "project", "data") }));
    await query(server.url, "create table kept as select 42 as answer");
    await server.restart({ mode: "immediate" });
    expect(await query(server.url, "select answer from kept")).toEqual([[42]]);
    expect(statSync(home).mode & 0o777).toBe(0o700);
  });

  it.concurrent("a directory of an ordinary user stays that user's", async () => {
    const home = temporaryDirectory(0o755);
    chownSync(home, daemon, daemon);
    const directory = join(home, "data");
    const asDaemon = { ...readableProject(), uid: daemon };
    expect(await runServer({ directory }, asDaemon)).toBe(daemon);
    expect(await runServer({ directory }, readableProject())).toBe(daemon);
    expect(await runServer({ directory }, asDaemon)).toBe(daemon);
  });

  it.concurrent("servers have a user of their own, which stays that of their directories", async () => {
    const directory = join(temporaryDirectory(0o755), "data");
    const [first, other] = await Promise.all([
      runServer({ directory }, readableProject()),
      startLocalPostgres().then((server) => userOf(stopAtEnd(server).pid)),
    ]);
    expect(first).toSatisfy(isServersOwn);
    expect(other).toBe(first);
    expect(statSync(directory).uid).toBe(first);
    expect(await runServer({ directory }, readableProject())).toBe(first);
  });

  it.concurrent("a directory that another process of root fills just now is joined", async () => {
    // Whose directory it becomes, and where.
    for (const uid of [0, daemon]) {
      const home = temporaryDirectory(0o755);
      chownSync(home, uid, uid);
      const directory = join(home, "data");
      mkdirSync(directory, { mode: 0o700 });
      chownSync(directory, uid, uid);
      const first = new UserProcess({ directory });
      const others: UserProcess[] = [];
      // From before the first file is there until long after the last one.
      while (others.length < 6 && !existsSync(join(directory, "postmaster.pid"))) {
        others.push(new UserProcess({ directory }));
        await once(others.at(-1)!.child, "spawn");
      }
      const servers = await Promise.all([first, ...others].map((user) => user.started()));
      expect(new Set(servers.map((server) => server.pid)).size).toBe(1);
      await Promise.all([first, ...others].map((user) => user.kill()));
      await until("the server is gone", () => servers.every(isGone));
    }
  });

  it.concurrent("where only the usual users can be had, the server runs as nobody", async () => {
    const map = "0 0 1000\n65534 65534 1\n";
    const script = `echo ready; read -r line; exec "$@"`;
    const child = spawn("unshare", ["--user", "sh", "-c", script, "sh", ...showIdentity], { stdio: "pipe" });
    const [said] = (await once(child.stdout, "data")) as [Buffer];
    expect(String(said)).toBe("ready\n");
    writeFileSync(`/proc/${child.pid}/uid_map`, map);
    writeFileSync(`/proc/${child.pid}/gid_map`, map);
    child.stdin.end("go\n");
    const [shown] = (await once(child.stdout, "data")) as [Buffer];
    expect(JSON.parse(String(shown))).toEqual({ uid: nobody, gid: nobody });
  });

  it.concurrent("a root that can become nobody else is told so", async () => {
    const wrapper = ["unshare", "--user", "--map-root-user"];
    if (!runCommand([...wrapper, "true"])) {
      console.log("skipped: this system makes no user namespaces");
      return;
    }
    const failure = await new UserProcess({}, { wrapper }).failed();
    expect(failure).toMatchObject({ code: "UnsupportedPlatform", message: /refuses to run as root/ });
  });
});

describe.skipIf(!isRoot)("for an ordinary user", () => {
  it.concurrent("a server starts with an unreadable home and a read-only node_modules", async () => {
    const home = temporaryDirectory(0o700);
    const project = installProject(temporaryDirectory(0o755), { withBinaries: true });
    const env = { HOME: home, XDG_CACHE_HOME: home };
    expect(await runServer({}, { ...project, uid: daemon, env })).toBe(daemon);
    expect(readdirSync(project.libraries)).not.toContain("libpq.so.5");
  });

  it.concurrent("a directory of somebody else is refused by name of its owner", async () => {
    const directory = join(temporaryDirectory(0o755), "data");
    mkdirSync(directory);
    for (const mode of [0o755, 0o700]) {
      chmodSync(directory, mode);
      const failure = await new UserProcess({ directory }, { ...readableProject(), uid: nobody }).failed();
      expect(failure).toMatchObject({
        code: "StartFailed",
        message: /belongs to user id 0, not to you \(65534\)/,
      });
    }
    expect(readdirSync(directory)).toEqual([]);
  });

  it.concurrent("a user without an entry in /etc/passwd is told how to get one", async () => {
    const failure = await new UserProcess({}, { ...readableProject(), uid: withoutEntry }).failed();
    expect(failure).toMatchObject({
      code: "NoPasswdEntry",
      message: /user id 12345 has no entry in \/etc\/passwd/,
    });
    expect(existsSync(join(temporaryBase, `pawl-postgres-cache-${withoutEntry}`))).toBe(true);
  });
});
