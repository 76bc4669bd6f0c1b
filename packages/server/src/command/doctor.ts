/** `pawl doctor`: checks a database and says how to fix every problem. Only reads. */

import type { Command } from "commander";
import { database as databases, values } from "pawl/engine";
import { findSchema, findUrl, addDatabaseOptions } from "./terminal/connection.js";
import { describeFailure, exitCode } from "./terminal/failure.js";
import { examineDatabase } from "../doctor/examine.js";
import type { Finding } from "../doctor/findings.js";
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

async function examine(flags: Flags): Promise<readonly Finding[]> {
  const schema = findSchema(flags.schema) ?? "pawl";
  const given = databases.givenUrl(findUrl(flags.url));
  const patienceMs = values.toMilliseconds(flags.patience ?? "1m", "--patience");
  const database = await databases.locate(given);
  try {
    return await examineDatabase({ url: database.url, schema }, { patienceMs, describe: describeFailure });
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
