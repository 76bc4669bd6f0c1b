/**
 * Two environment variables that help to find out why a test fails. `PAWL_TEST_SQL=1` prints every
 * statement that the test's process sends, with its values. `PAWL_SEED=123` gives that seed to every
 * property of fast-check. A setup file of every project.
 */

import pg from "pg";

if (process.env["PAWL_TEST_SQL"]) printStatements();

const seed = process.env["PAWL_SEED"];
if (seed) (await import("fast-check")).default.configureGlobal({ seed: Number(seed) });

function printStatements(): void {
  const prototype = pg.Client.prototype as { query: (...given: unknown[]) => unknown };
  const { query } = prototype;
  prototype.query = function printing(this: unknown, ...given: unknown[]): unknown {
    const [first, second] = given;
    const { text, values = second } =
      typeof first === "string" ? { text: first } : (first as { text?: string; values?: unknown });
    const shown = Array.isArray(values) && values.length > 0 ? ` -- ${JSON.stringify(values)}` : "";
    process.stderr.write(`${(performance.now() / 1_000).toFixed(3)} ${text?.trim() ?? "?"}${shown}\n`);
    return query.apply(this, given);
  };
}
