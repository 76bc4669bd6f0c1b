import { spawn } from "node:child_process";
import { connect as dial, createServer } from "node:net";
import { fork, job } from "pawl";
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { copyName, onServer, sideOf } from "../../support/copies.js";
import { requireBuild } from "../../support/built.js";
import { testDatabase } from "../../support/database.js";
import { until } from "../../support/until.js";

// No database is copied through a pooler (pooler.test.ts).
const { directUrl: url } = await testDatabase();
const source = new pg.Client({ connectionString: url }).database!;
const mail = job({ name: "mail", run: () => "sent" });

/** The process of the server that is making this copy, once it keeps new connections to the original waiting. */
const creatorOf = (name: string): Promise<number> =>
  until(
    "the copy is being made",
    async () => {
      const rows = await onServer<{ pid: number }>(
        `select a.pid from pg_stat_activity a join pg_locks l on l.pid = a.pid and l.granted and l.mode = 'ShareLock'
          and l.objid = (select oid from pg_database where datname = $2)
        where a.query like 'create database%' and strpos(a.query, $1) > 0`,
        [name, source],
      );
      return rows[0]?.pid;
    },
    20_000,
  );

const exists = async (name: string): Promise<boolean> =>
  (await onServer("select from pg_database where datname = $1", [name])).length > 0;

/** The URL with another role. */
function as(user: string): string {
  const other = new URL(url);
  other.username = user;
  return other.href;
}

/** A role that ends with the test. */
async function role(name: string, attributes: string): Promise<void> {
  await onServer(`create role ${name} login ${attributes}`);
  const { sql } = sideOf(url);
  onTestFinished(async () => {
    await sql(`drop owned by ${name}`);
    await onServer(`drop role ${name}`);
  });
}

describe("a fork that cannot be made says why, and disturbs nobody", () => {
  it("a name that is taken or is none", async () => {
    const name = copyName();
    await fork({ url, name });
    await expect(fork({ url, name })).rejects.toMatchObject({
      code: "InvalidOption",
      message: expect.stringContaining(`there is a database "${name}" already`),
    });
    await expect(fork({ url, name: source })).rejects.toThrow(/already/);
    for (const wrong of ["", "a b", "a/b", "-a", 'a"b', "a".repeat(64), 7 as never]) {
      await expect(fork({ url, name: wrong })).rejects.toThrow(/name must be 1 to 63 characters/);
    }
  });

  it("a role that may not create databases, does not own this one, or cannot end the connections of others", async () => {
    await role("pawl_forker", "");
    await sideOf(url).sql("grant usage on schema pawl to pawl_forker");
    const connected = new pg.Client({ connectionString: url });
    await connected.connect();
    const name = copyName();
    const forking = (): Promise<unknown> => fork({ url: as("pawl_forker"), name });
    await expect(forking()).rejects.toThrow(
      /"pawl_forker" may not create databases: alter role "pawl_forker" createdb/,
    );
    await onServer("alter role pawl_forker createdb");
    await expect(forking()).rejects.toThrow(
      /only its owner may copy .* that is the role "postgres", not "pawl_forker"/,
    );
    await onServer(`alter database ${source} owner to pawl_forker`);
    await expect(forking()).rejects.toThrow(/connections of "postgres" would have to end/);
    await onServer(`alter database ${source} owner to postgres`);
    expect(await exists(name)).toBe(false);
    expect((await connected.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
    await connected.end();
  });

  it("a pooler, which would keep the connections that have to end", async () => {
    const { host, port } = new pg.Client({ connectionString: inject("databaseUrl") });
    // Gives out process ids of its own, as poolers do.
    const pooler = createServer((incoming) => {
      const outgoing = dial(host.startsWith("/") ? { path: `${host}/.s.PGSQL.${port}` } : { host, port });
      outgoing.on("data", (data) => {
        const at = data.indexOf(Buffer.from([0x4b, 0, 0, 0, 12]));
        if (at >= 0) data.writeInt32BE(data.readInt32BE(at + 5) + 1, at + 5);
        incoming.write(data);
      });
      for (const [one, other] of [
        [incoming, outgoing],
        [outgoing, incoming],
      ] as const) {
        one.on("error", () => {});
        one.on("close", () => other.destroy());
      }
      incoming.pipe(outgoing);
    });
    await new Promise<void>((resolve) => pooler.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => new Promise((resolve) => pooler.close(() => resolve())));
    const through = new URL(url);
    through.search = "";
    through.host = `127.0.0.1:${(pooler.address() as { port: number }).port}`;
    await expect(fork({ url: through.href, name: copyName() })).rejects.toMatchObject({
      code: "NotSupported",
      message: expect.stringContaining("pooler"),
    });
  });

  it("a database without the schema of Pawl", async () => {
    await expect(fork({ url, schema: "other", name: copyName() })).rejects.toThrow(
      /no schema "other" of Pawl yet/,
    );
  });
});

describe("a fork that fails in the middle leaves the original as it was", () => {
  it("when the server ends what makes the copy", async () => {
    const here = sideOf(url);
    await here.serve([mail]);
    const name = copyName();
    const forking = fork({ url, name });
    forking.catch(() => {});
    await onServer("select pg_terminate_backend($1)", [await creatorOf(name)]);
    await expect(forking).rejects.toThrow(/terminating connection|cannot be used/);
    expect(await exists(name)).toBe(false);
    const { runId } = await until("the original is at work again", () =>
      here.pawl.start(mail).catch(() => null),
    );
    expect(await here.pawl.result(runId, { timeout: "100s" })).toBe("sent");
  });

  it("when its process is killed: a copy that was not completed takes no connections", async () => {
    const here = sideOf(url);
    await here.serve([mail]);
    const name = copyName();
    requireBuild();
    const program = `import { fork } from "pawl"; await fork(${JSON.stringify({ url, name, held: true })});`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
      cwd: new URL("../../", import.meta.url),
      stdio: "inherit",
    });
    const ended = new Promise((resolve) => child.once("exit", resolve));
    await creatorOf(name);
    child.kill("SIGKILL");
    await ended;
    const { runId } = await until("the original is at work again", () =>
      here.pawl.start(mail).catch(() => null),
    );
    expect(await here.pawl.result(runId, { timeout: "100s" })).toBe("sent");
    const working = "select from pg_stat_activity where query like 'create database%' and state = 'active'";
    await until("the server has given up", async () => (await onServer(working)).length === 0, 20_000);
    if (await exists(name)) {
      await expect(fork({ url, name })).rejects.toThrow(
        /takes no connections: perhaps a copy that was interrupted/,
      );
    } else {
      expect(await fork({ url, name })).toMatchObject({ held: false });
    }
    // The mark that a held copy is born with means nothing here, and the next fork takes it away.
    expect(await here.sql("select held from settings")).toEqual([{ held: false }]);
    expect(await fork({ url, name: copyName() })).toMatchObject({ held: false });
    expect(await here.sql("select held_copy from settings")).toEqual([{ held_copy: null }]);
  });
});

describe("a fork has what the original has beside its contents", () => {
  it("who may connect, the settings of its sessions, and its owner", async () => {
    await role("pawl_owner", "");
    await role("pawl_reader", "");
    await onServer(`revoke all on database ${source} from public`);
    await onServer(`grant connect on database ${source} to pawl_reader with grant option`);
    await onServer(`alter database ${source} connection limit 50`);
    await onServer(`alter database ${source} set search_path = "A b", pawl, public`);
    await onServer(`alter database ${source} set work_mem = '7MB'`);
    await onServer(`alter role pawl_reader in database ${source} set statement_timeout = '9s'`);
    const name = copyName();
    expect((await fork({ url, name })).notes).toEqual([]);
    const facts = `select d.datacl::text as acl, d.datconnlimit, d.datallowconn, pg_get_userbyid(d.datdba) as owner,
      (select json_agg(json_build_array(s.setrole, s.setconfig) order by s.setrole) from pg_db_role_setting s where s.setdatabase = d.oid) as settings
      from pg_database d where d.datname = $1`;
    const [original] = await onServer<{ settings: unknown[] }>(facts, [source]);
    expect(original!.settings).toHaveLength(2);
    expect(await onServer(facts, [name])).toEqual([original]);
    await onServer(`alter role pawl_reader in database ${source} reset all`);
    await onServer(`drop database ${name}`);
    await onServer(`revoke all on database ${source} from pawl_reader`);
  });
});
