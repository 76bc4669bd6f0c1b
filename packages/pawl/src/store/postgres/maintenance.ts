/**
 * Opens connections to a server for work on its databases as a whole. They go straight to the
 * server, into a database other than the one in question, without time limits. The code that copies
 * a database uses them.
 */

import pg from "../driver/driver.js";
import { NotSupported } from "../../values/errors.js";
import { connectionOptions, databaseName, types, withDatabase } from "./database.js";
import { sqlState } from "./database-errors.js";
import { isPooled } from "./pooler.js";

/**
 * Databases that servers have beside those of their users, in the order in which Pawl tries them.
 */
const candidates = ["postgres", "defaultdb", "template1"];
/** The database does not exist, or the role may not connect to it. */
const closed = ["3D000", "28000", "42501", "55000"];

/** Opens a connection to another database of the server. Refuses a connection through a pooler. */
export async function openMaintenance(url: string): Promise<pg.Client> {
  const given = databaseName(url);
  let refused: unknown;
  for (const name of candidates.filter((candidate) => candidate !== given)) {
    const client = new pg.Client({ ...connectionOptions(withDatabase(url, name)), query_timeout: 0, types });
    // The next statement reports a lost connection.
    client.on("error", () => {});
    try {
      await client.connect();
      await client.query("set statement_timeout = 0");
      await client.query("set lock_timeout = 0");
      if (!(await isPooled(client))) return client;
    } catch (error) {
      await client.end().catch(() => {});
      if (!closed.includes(sqlState(error) ?? "")) throw error;
      refused = error;
      continue;
    }
    await client.end().catch(() => {});
    throw new NotSupported(
      "this URL leads through a pooler, which stands between Pawl and the connections that have to end for a moment: " +
        "give the URL of the server itself",
    );
  }
  throw refused;
}
