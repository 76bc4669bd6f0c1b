/**
 * What another user of the machine has planted is neither read nor run: each test is a real user
 * against another.
 */
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { once } from "node:events";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { chooseTemporaryBase } from "../dist/places.js";
import { requireTrustedDirectory } from "../dist/trust.js";
import { isGone, isRoot, temporaryBase, temporaryDirectory, until } from "./observe.js";
import { installProject, type Project } from "./project.js";
import { UserProcess, type Failed } from "./user-process.js";

const victim = 1;
const attacker = 2;

let readable: Project | undefined;

function asVictim(options: object): UserProcess {
  readable ??= installProject(temporaryDirectory(0o755), { withBinaries: true });
  return new UserProcess(options, { ...readable, uid: victim, afterwards: "stop" });
}

async function succeeds(user: UserProcess): Promise<void> {
  const server = await user.started();
  user.child.stdin?.end();
  await user.ended();
  await until("the server is gone", () => isGone(server));
}

/** A server of the attacker's, in a directory like those of supervisors. Answers with who came. */
async function listenAsAttacker(): Promise<{ socket: string; visits: () => number }> {
  const socket = join(temporaryDirectory(0o755), "control.sock");
  let visits = 0;
  const server = createServer((connection) => {
    visits += 1;
    connection.destroy();
  });
  server.listen(socket);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  chmodSync(socket, 0o777);
  chownSync(socket, attacker, attacker);
  chownSync(dirname(socket), attacker, attacker);
  return { socket, visits: () => visits };
}

function directoryOf(uid: number, mode: number): string {
  const directory = join(temporaryDirectory(0o755), "data");
  mkdirSync(directory);
  chmodSync(directory, mode);
  chownSync(directory, uid, uid);
  return directory;
}

function record(directory: string, controlSocket: string, owner: number, mode = 0o644): string {
  const file = join(directory, "pawl-server.1.json");
  writeFileSync(file, JSON.stringify({ controlSocket }));
  chmodSync(file, mode);
  chownSync(file, owner, owner);
  return file;
}

async function refusal(directory: string): Promise<Failed> {
  const before = readdirSync(directory);
  const failure = await asVictim({ directory }).failed();
  expect(failure.code).toBe("StartFailed");
  expect(readdirSync(directory)).toEqual(before);
  return failure;
}

describe.skipIf(!isRoot)("an ordinary user", () => {
  it.concurrent("does not join the server that a record in somebody else's directory names", async () => {
    const { socket, visits } = await listenAsAttacker();
    const directory = directoryOf(attacker, 0o777);
    record(directory, socket, attacker);
    const { message } = await refusal(directory);
    expect(message).toContain(`belongs to user id ${attacker}, not to you (${victim})`);
    expect(visits()).toBe(0);
  });

  it.concurrent("does not use a directory that others could write to, and is told how to close it", async () => {
    const { socket, visits } = await listenAsAttacker();
    const directory = directoryOf(victim, 0o777);
    record(directory, socket, attacker);
    const { message } = await refusal(directory);
    expect(message).toContain("can be written by other users (mode 0777)");
    expect(message).toContain(`chmod -R go-w ${directory}`);
    expect(visits()).toBe(0);
  });

  it.concurrent("does not believe a record that was planted before the directory was closed", async () => {
    const { socket, visits } = await listenAsAttacker();
    const directory = directoryOf(victim, 0o700);
    const file = record(directory, socket, attacker);
    const { message } = await refusal(directory);
    expect(message).toContain(`${file} is not used: it belongs to user id ${attacker}`);
    expect(visits()).toBe(0);
  });

  it.concurrent("does not believe a record of its own that others can change", async () => {
    const directory = directoryOf(victim, 0o700);
    record(directory, "/nowhere/control.sock", victim, 0o666);
    expect((await refusal(directory)).message).toContain("can be written by other users (mode 0666)");
  });

  it.concurrent("does not run on data that somebody else has planted", async () => {
    const directory = directoryOf(victim, 0o755);
    writeFileSync(join(directory, "PG_VERSION"), "18\n");
    writeFileSync(join(directory, "postgresql.conf"), "archive_command = 'touch /tmp/planted'\n");
    chownSync(join(directory, "PG_VERSION"), victim, victim);
    chownSync(join(directory, "postgresql.conf"), attacker, attacker);
    expect((await refusal(directory)).message).toContain(`postgresql.conf is not used: it belongs to`);
  });

  it.concurrent("follows no link: neither of a record nor of the version", async () => {
    for (const name of ["pawl-server.1.json", "PG_VERSION"]) {
      const directory = directoryOf(victim, 0o700);
      symlinkSync("/etc/passwd", join(directory, name));
      lchownSync(join(directory, name), victim, victim);
      const { message } = await refusal(directory);
      expect(message).toContain(`${name} is not used: it is a symbolic link`);
    }
  });

  it.concurrent("does not meet somebody who took the place of a server that is gone", async () => {
    const { socket, visits } = await listenAsAttacker();
    const directory = directoryOf(victim, 0o700);
    record(directory, socket, victim);
    await succeeds(asVictim({ directory }));
    expect(visits()).toBe(0);
  });

  it.concurrent("may use its own empty directory, which is closed to others first", async () => {
    const directory = directoryOf(victim, 0o777);
    await succeeds(asVictim({ directory }));
    expect(statSync(directory).mode & 0o777).toBe(0o700);
  });
});

describe("the directory for temporary files", () => {
  const chosen = (directory: string): string => {
    const before = process.env["TMPDIR"];
    try {
      process.env["TMPDIR"] = directory;
      return chooseTemporaryBase(undefined);
    } finally {
      process.env["TMPDIR"] = before;
    }
  };

  it("is passed over if everybody can replace its content", () => {
    const directory = temporaryDirectory(0o777);
    expect(chosen(directory)).not.toBe(directory);
    chmodSync(directory, 0o1777);
    expect(chosen(directory)).toBe(directory);
  });

  it.skipIf(!isRoot)("is passed over if it belongs to another user", () => {
    const directory = temporaryDirectory(0o755);
    expect(chosen(directory)).toBe(directory);
    chownSync(directory, attacker, attacker);
    expect(chosen(directory)).not.toBe(directory);
  });
});

describe.skipIf(!isRoot)("root", () => {
  it("trusts files of another owner only while another process of root fills the directory", () => {
    const directory = temporaryDirectory(0o700);
    const marker = join(directory, "pawl-initialising");
    const file = join(directory, "PG_VERSION");
    writeFileSync(marker, "");
    writeFileSync(file, "18\n");
    chownSync(file, victim, victim);
    requireTrustedDirectory(directory);
    chownSync(marker, victim, victim);
    expect(() => requireTrustedDirectory(directory)).toThrow(`belongs to user id ${victim}`);
  });

  it.concurrent("does not use a directory that somebody put where everybody can", async () => {
    const directory = join(temporaryBase, "in-public");
    mkdirSync(directory, { mode: 0o700 });
    chownSync(directory, attacker, attacker);
    const failure = await new UserProcess({ directory }).failed();
    expect(failure.message).toContain(
      `belongs to user id ${attacker} and lies in ${temporaryBase}, where everybody can create directories`,
    );
    expect(failure.message).toContain(`chown -R root ${directory}`);
  });

  it.concurrent("writes through no link of the user whose directory it serves", async () => {
    const home = temporaryDirectory(0o755);
    chownSync(home, attacker, attacker);
    const directory = join(home, "data");
    mkdirSync(directory);
    const treasure = join(temporaryDirectory(0o700), "treasure");
    writeFileSync(treasure, "of root");
    symlinkSync(treasure, join(directory, "pawl-initialising"));
    lchownSync(join(directory, "pawl-initialising"), attacker, attacker);
    chownSync(directory, attacker, attacker);
    await succeeds(new UserProcess({ directory }, { afterwards: "stop" }));
    expect(readFileSync(treasure, "utf8")).toBe("of root");
    expect(statSync(treasure).uid).toBe(0);
    expect(statSync(directory).uid).toBe(attacker);
    expect(existsSync(join(directory, "pawl-initialising"))).toBe(false);
  });

  it.concurrent("gives away nothing of its own in the directory of an ordinary user", async () => {
    const home = temporaryDirectory(0o755);
    chownSync(home, victim, victim);
    const directory = join(home, "data");
    await succeeds(asVictim({ directory }));
    const file = join(directory, "of-root");
    writeFileSync(file, "", { mode: 0o600 });
    await succeeds(new UserProcess({ directory }, { afterwards: "stop" }));
    expect(statSync(file).uid).toBe(0);
    expect(statSync(directory).uid).toBe(victim);
  });
});
