/** Every failure has a code, says what was wrong, and how to put it right. */
import { chmodSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { diagnoseOutput } from "../dist/errors.js";
import { LocalPostgresError, startLocalPostgres } from "../dist/index.js";
import { runCommand, temporaryDirectory } from "./observe.js";
import { installProject } from "./project.js";
import { failureElsewhere, UserProcess } from "./user-process.js";

const wrongOptions: Array<[object, RegExp]> = [
  [{ directry: "/x" }, /unknown option "directry"; allowed are directory, port, database, settings/],
  [{ directory: "" }, /directory must be a path, got ""/],
  [{ directory: 5 }, /directory must be a path, got 5/],
  [{ port: 0 }, /port must be a whole number from 1 to 65535 or "free", got 0/],
  [{ port: "5432" }, /port must be .* got "5432"/],
  [{ database: "" }, /database must be a name of 1 to 63 bytes, got ""/],
  [{ settings: ["fsync"] }, /settings must be an object/],
  [{ settings: { fsync: null } }, /settings\.fsync must be a string, a number or a boolean, got null/],
  [{ settings: { "bad name": 1 } }, /"bad name" is not the name of a PostgreSQL setting/],
  [{ settings: { port: 1 } }, /settings may not contain port/],
];

it.each(wrongOptions)("options %j are refused before anything starts", async (options, message) => {
  const failure = startLocalPostgres(options);
  await expect(failure).rejects.toBeInstanceOf(LocalPostgresError);
  await expect(failure).rejects.toMatchObject({ code: "InvalidOption", message });
});

it("a setting that PostgreSQL refuses is an invalid option, with PostgreSQL's reason", async () => {
  const failure = startLocalPostgres({ settings: { max_connections: "many" } });
  await expect(failure).rejects.toMatchObject({
    code: "InvalidOption",
    message: /invalid value for parameter "max_connections": "many"/,
  });
});

it("a server that does not come up is reported with the end of its log", async () => {
  const failure = startLocalPostgres({ settings: { shared_preload_libraries: "no_such_library" } });
  await expect(failure).rejects.toMatchObject({
    code: "StartFailed",
    message: /The end of the Postgres log:[^]*could not access file "no_such_library"/,
  });
});

it("a platform without binaries is named, with those that have them", async () => {
  const failure = await failureElsewhere("sunos", "x64");
  expect(failure).toMatchObject({
    code: "UnsupportedPlatform",
    message: /no PostgreSQL binaries for sunos-x64, only for/,
  });
});

it("Windows is told to use WSL", async () => {
  expect(await failureElsewhere("win32", "x64")).toMatchObject({
    code: "UnsupportedPlatform",
    message: /WSL 2/,
  });
});

it("an install without optional dependencies is told how to get them", async () => {
  const project = installProject(temporaryDirectory(0o755), { withBinaries: false });
  const failure = await new UserProcess({}, project).failed();
  expect(failure).toMatchObject({ code: "UnsupportedPlatform", message: /npm install --include=optional/ });
});

it("a system without the C library of the binaries (musl) is told so", async () => {
  const project = installProject(temporaryDirectory(0o755), { withBinaries: true });
  // The kernel reports a missing interpreter as it reports a missing loader: as a file that does
  // not exist.
  writeFileSync(join(project.libraries, "..", "bin", "postgres"), "#!/lib/no-such-loader\n");
  const failure = await new UserProcess({}, project).failed();
  expect(failure).toMatchObject({ code: "UnsupportedPlatform", message: /need glibc/ });
});

it("a full disk is DiskFull, and leaves no half-made directory", async () => {
  const small = temporaryDirectory(0o755);
  const mounted = runCommand(["mount", "-t", "tmpfs", "-o", "size=20m,mode=1777", "none", small]);
  if (!mounted) {
    console.log(
      "no right to mount a small file system: only the translation of PostgreSQL's words is tested",
    );
    return;
  }
  try {
    const throwAway = await new UserProcess({}, { env: { TMPDIR: small } }).failed();
    expect(throwAway).toMatchObject({ code: "DiskFull", message: /disk is full.*TMPDIR/ });
    const directory = join(small, "data");
    const persistent = await new UserProcess({ directory }).failed();
    expect(persistent).toMatchObject({ code: "DiskFull" });
    expect(readdirSync(directory).filter((name) => !name.startsWith("pawl-server"))).toEqual([]);
  } finally {
    runCommand(["umount", "-l", small]);
    chmodSync(small, 0o755);
  }
});

it.each([
  ["initdb: error: could not write file: No space left on device", "DiskFull"],
  ["FATAL: could not extend file: Disk quota exceeded", "DiskFull"],
  ["initdb: could not look up effective user ID 77: user does not exist", "NoPasswdEntry"],
  ['LOG: could not bind IPv4 address "127.0.0.1": Address already in use', "PortTaken"],
  ["FATAL: something new", "StartFailed"],
])("PostgreSQL's words %j mean %s", (output, code) => {
  expect(diagnoseOutput("the server", output)).toMatchObject({
    code,
    message: expect.stringContaining(output),
  });
});
