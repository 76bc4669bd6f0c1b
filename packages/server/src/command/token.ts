/** `pawl token create`: a bearer token for callers of a server, and its entry in `PAWL_TOKENS`. */

import { randomBytes } from "node:crypto";
import type { Command } from "commander";
import { tokenEntry } from "../http/tokens.js";
import { action, addCommand, addGroup, type Session } from "./terminal/session.js";
import { prettyJson } from "./terminal/text.js";

interface Flags {
  readonly scope: string;
  readonly name?: string;
  readonly names?: string;
  readonly queues?: string;
  readonly json?: true;
}

export function addToken(program: Command, session: Session): void {
  const token = addGroup(program, session, {
    name: "token",
    description: "create bearer tokens for callers of a server",
    examples: ["pawl token create --scope write --name web"],
  });
  addCommand(token, session, {
    name: "create",
    description:
      "create a bearer token: prints it once, with its entry for PAWL_TOKENS, which has only the hash",
    examples: [
      "pawl token create --scope write --name web",
      "pawl token create --scope worker --names billing- --queues billing",
    ],
  })
    .requiredOption("--scope <scopes>", "start, read, write, worker or admin; join several with +")
    .option("--name <name>", "the name in messages (default: its scopes and a number)")
    .option(
      "--names <prefixes>",
      "only definitions and limits whose names begin with one of these, joined with +",
    )
    .option("--queues <prefixes>", "only queues whose names begin with one of these, joined with +")
    .option("--json", "print JSON: { name, token, entry }")
    .action(action(session, async (flags: Flags) => print(session, flags)));
}

function print({ shell }: Session, { scope, name: given, names, queues, json }: Flags): void {
  const scopes = scope.split("+");
  const name = given ?? `${scopes.join("-")}-${randomBytes(2).toString("hex")}`;
  const secret = `pawl_${randomBytes(32).toString("base64url")}`;
  const entry = tokenEntry({
    name,
    scopes,
    names: names?.split("+") ?? [],
    queues: queues?.split("+") ?? [],
    secret,
  });
  if (json === true) return shell.print(prettyJson({ name, token: secret, entry }));
  shell.print(`token: ${secret}`);
  shell.print(`entry: ${entry}`);
  shell.printError(
    "Give the token to the caller: pawl does not print it again. Add the entry to PAWL_TOKENS of the server.",
  );
}
