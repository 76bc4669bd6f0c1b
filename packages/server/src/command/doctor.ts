/** `pawl doctor`: checks a database and says how to fix every problem. Only reads. */

import type { Command } from "commander";
import { databaseState } from "pawl";
import { database as databases, values } from "pawl/engine";
import { findSchema, findUrl, addDatabaseOptions } from "./terminal/connection.js";
import { describeFailure, exitCode } from "./terminal/failure.js";
import { type Finding, judgeRuns, judgeServer, judgeState } from "./findings.js";
import { judgeBulk, judgeLimits } from "./operating-findings.js";
import { action, addCommand, type Session } from "./terminal/session.js";
import type { Shell } from "./terminal/shell.js";
import { plural, prettyJson } from "./terminal/text.js";

interface Flags {
  readonly url?: string;
  readonly schema?: string;
  readonly patience?: string;
  readonly json?: true;
}

export function addDoctor(program: Command, session: Session): void {
  const command = addCommand(program, session, {
    name: "doctor",
    description: "check a database and say how to fix what is wrong; ends with 1 if anything is",
    examples: ["pawl doctor", "pawl doctor --url postgres://app@db:5432/app --json"],
  })
    .option("--patience <duration>", "how old a transaction and how late a run may be (default: 1m)")
    .option("--json", "print JSON: { findings }");
  addDatabaseOptions(command).action(
    action(session, async (flags: Flags) => {
      const findings = await examine(flags);
      const wrong = findings.filter(({ level }) => level === "wrong").length;
      session.shell.print(
        flags.json === true ? prettyJson({ findings }) : showFindings(findings, wrong, session.shell),
      );
      return wrong === 0 ? exitCode.ok : exitCode.no;
    }),
  );
}

async function examine(flags: Flags): Promise<Finding[]> {
  const schema = findSchema(flags.schema) ?? "pawl";
  const given = databases.givenUrl(findUrl(flags.url));
  const patienceMs = values.toMilliseconds(flags.patience ?? "1m", "--patience");
  const findings: Finding[] = [];
  /** A check that cannot run is a finding, too. */
  const attempt = async <T>(check: string, ask: () => Promise<T>, fix: string): Promise<T | undefined> => {
    try {
      return await ask();
    } catch (error) {
      findings.push({ check, level: "wrong", text: describeFailure(error), fix });
      return undefined;
    }
  };
  const database = await databases.locate(given);
  try {
    const address = { url: database.url, schema };
    const unreachable = "check host, port, user, password and database of the URL, and that the server runs";
    const server = await attempt(
      "connection",
      () => databases.readServerHealth(address, { oldMs: patienceMs }),
      unreachable,
    );
    if (server === undefined) return findings;
    findings.push({ check: "connection", level: "ok", text: databases.describeAddress(database.url) });
    const pooling = await attempt("pooler", () => databases.findPooling(address), unreachable);
    findings.push(...judgeServer(server, pooling ?? "none", patienceMs));
    const version = await attempt(
      "schema",
      () => databases.requireSchema(address),
      "run: pawl migrate, with the same URL and schema",
    );
    if (version === undefined) return findings;
    findings.push({
      check: "schema",
      level: "ok",
      text: `"${schema}" is at version ${version}, which this release needs`,
    });
    const state = await attempt(
      "identity",
      () => databaseState(address),
      "run: pawl migrate, with the same URL and schema",
    );
    if (state !== undefined) findings.push(...judgeState(state));
    const runs = await attempt(
      "runs",
      () => databases.readSchemaHealth(address),
      "grant the role of the URL its rights on the schema: pawl migrate --grant <role>",
    );
    if (runs !== undefined) {
      findings.push(...judgeRuns(runs, server.settings, patienceMs));
      findings.push(...judgeLimits(runs, patienceMs), ...judgeBulk(runs, patienceMs));
    }
    return findings;
  } finally {
    await database.close();
  }
}

function showFindings(findings: readonly Finding[], wrong: number, { colors }: Shell): string {
  const width = Math.max(...findings.map(({ check }) => check.length)) + 2;
  const marks = { ok: colors.green("ok   "), note: colors.yellow("note "), wrong: colors.red("wrong") };
  const lines = findings.flatMap(({ check, level, text, fix }) => [
    `${marks[level]}  ${check.padEnd(width)}${text}`,
    ...(fix === undefined ? [] : [`${" ".repeat(7 + width)}${colors.bold("fix:")} ${fix}`]),
  ]);
  const end =
    wrong === 0
      ? colors.green("nothing is wrong")
      : colors.red(`${plural(wrong, "thing is", "things are")} wrong`);
  return [...lines, end].join("\n");
}
