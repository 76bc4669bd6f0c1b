/**
 * The part of the store that works in a caller's open transaction: one call of `start` or `signal`
 * on the caller's own connection. The caller decides whether and when to commit. So this file never
 * inserts a run already claimed and never retries. It also sets no lock timeout, which would stay
 * in force for the caller's own statements. A database error aborts the transaction.
 *
 * The transaction may have any isolation level: `start` and `signal` decide by the rows that they
 * have locked or inserted (`schema/functions/signal/signal.sql`).
 *
 * Values go out as text with a cast, and come back as text in a known order. So it does not matter
 * how a library converts types or column names. `within` uses this file.
 */

import { InvalidOption, KeyConflict } from "../../values/errors.js";
import { isObject } from "../../values/options.js";
import type { CorrelatedSignal, NewRun, NewSignal, SignalVerdict, StartedRun } from "../store.js";
import type { Caller } from "./callers.js";
import { Refused } from "../errors.js";
import { advice } from "./database-errors.js";
import { quoteName } from "./literals.js";
import { signalValues, startValues, toStarted } from "./rows.js";

/**
 * The functions: the columns they return, in the order in which Pawl reads them, and the types of
 * their arguments.
 */
const functions = {
  start_runs: {
    columns: ["position", "id", "created", "status", "conflict"],
    types: "new_run[] text[] boolean boolean text bigint".split(" "),
  },
  signal: {
    columns: ["position", "verdict"],
    types: "bigint[] text[] text[] text[] boolean".split(" "),
  },
  deliver_correlated: {
    columns: ["run_id", "verdict"],
    types: "text text text text text boolean".split(" "),
  },
};

/** The end of every statement. */
const end = ") as r";

export class TransactionStore {
  readonly #caller: Caller;
  readonly #schema: string;

  constructor(caller: Caller, schema: string) {
    this.#caller = caller;
    this.#schema = schema;
  }

  /** Starts all the runs. If their keys conflict, the database aborts the transaction. */
  async start(runs: readonly NewRun[]): Promise<StartedRun[]> {
    const rows = await this.#call(
      "start_runs",
      startValues(runs, { allOrNothing: true, patient: true, claim: null }),
    );
    return toStarted(
      rows.map(([position, id, created, status, conflict]) => ({
        position: Number(position),
        id: id!,
        created: created === "true",
        status: status as StartedRun["phase"],
        conflict: conflict ?? null,
      })),
    );
  }

  async signal(signal: NewSignal): Promise<SignalVerdict> {
    const [row] = await this.#call("signal", signalValues([signal], { patient: true }));
    return row![1] as SignalVerdict;
  }

  async signalCorrelated(signal: CorrelatedSignal): Promise<{ runId: string; verdict: SignalVerdict }[]> {
    const { correlationKey, definition, name, payload, dedupKey } = signal;
    const given = [correlationKey, definition, name, payload, dedupKey, true];
    const rows = await this.#call("deliver_correlated", given);
    return rows.map(([runId, verdict]) => ({ runId: runId!, verdict: verdict as SignalVerdict }));
  }

  async #call(
    name: keyof typeof functions,
    given: readonly (string | number | boolean | null)[],
  ): Promise<(string | null)[][]> {
    const { columns, types } = functions[name];
    const answer = columns.map((column) => `r.${column}::text`).join(", ");
    const fragments = [
      `select ${answer} from ${quoteName(this.#schema)}.${name}(`,
      ...types.map(
        (type, index) => `::text::${this.#qualified(type)}${index === types.length - 1 ? end : ", "}`,
      ),
    ];
    const values = given.map((value) => (value === null ? null : String(value)));
    try {
      const rows = await this.#caller.query({ fragments, values });
      return rows.map((row) => Object.values(row as Record<string, string | null>));
    } catch (error) {
      throw explainRefusal(error, this.#schema);
    }
  }

  /** The caller's search_path finds the types of PostgreSQL only. */
  #qualified(type: string): string {
    return type === "new_run[]" ? `${quoteName(this.#schema)}.${type}` : type;
  }
}

/**
 * Turns an error that Pawl can explain into one of Pawl's. Returns any other error unchanged,
 * because it belongs to the caller. The caller's code knows how to handle a serialization failure
 * or a lost connection of its library.
 */
function explainRefusal(error: unknown, schema: string): unknown {
  const { code, message } = serverError(error);
  switch (code) {
    case "PW409":
      return new KeyConflict(message, { cause: error });
    case "PW422":
      return new InvalidOption(message, { cause: error });
    case "3F000":
    case "42P01":
    case "42883":
    case "42501":
      return new Refused(`the database of this transaction refused: ${message}${advice(code, schema)}`, {
        cause: error,
      });
    default:
      return error;
  }
}

/**
 * Finds the server's error. Libraries wrap it in their own errors as the `cause`, or Prisma as its
 * `meta`. Knex puts the statement with all its values before the message.
 */
function serverError(error: unknown): { code: string; message: string } {
  let found = { code: "", message: "" };
  let inner = error;
  for (let depth = 0; depth < 5 && isObject(inner); depth++) {
    const { code, message, cause, meta } = inner;
    if (typeof code === "string" && typeof message === "string")
      found = { code, message: message.split(`${end} - `).at(-1)! };
    inner = cause ?? (isObject(meta) ? (meta.driverAdapterError ?? meta) : undefined);
  }
  return found;
}
