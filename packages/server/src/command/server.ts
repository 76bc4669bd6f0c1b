/**
 * `pawl server`: the server as a process, configured by the environment, stopped gracefully by
 * SIGTERM or Ctrl-C.
 */

import type { Command } from "commander";
import { migrate } from "pawl";
import { findUrl, addDatabaseOptions } from "./terminal/connection.js";
import { Refusal } from "./terminal/failure.js";
import { portNumber } from "./terminal/input.js";
import { waitForInterrupt } from "./terminal/interrupts.js";
import { lineLogger } from "./terminal/line-logger.js";
import { action, addCommand, type Session } from "./terminal/session.js";

interface Flags {
  readonly url?: string;
  readonly schema?: string;
  readonly host?: string;
  readonly port?: number;
  readonly migrate?: true;
}

export function addServer(program: Command, session: Session): void {
  const command = addCommand(program, session, {
    name: "server",
    description: "start the server: REST, the dashboard, remote workers, queues and topics over HTTP",
    examples: [
      "pawl server --url postgres://app@db:5432/app",
      "PAWL_HOST=0.0.0.0 PAWL_TOKENS=… pawl server --migrate",
    ],
  })
    .option("--host <host>", "the address to listen on (or PAWL_HOST; else 127.0.0.1)")
    .option("--port <number>", "the port (or PAWL_PORT; else 8080; 0: any free port)", portNumber)
    .option("--migrate", "bring the schema to the version of this release first");
  addDatabaseOptions(command).action(
    action(session, async (flags: Flags) => {
      const { createServer, readEnvironment, sendTraces } = await import("../index.js");
      const { options: environment, traces, warnings } = readEnvironment(process.env);
      const { host = environment.host, port = environment.port } = flags;
      const database = flags.url ?? environment.database ?? findUrl(undefined);
      const schema = flags.schema ?? environment.schema;
      const logger = lineLogger(session.shell);
      for (const warning of warnings) logger.warn(warning);
      const interrupted = waitForInterrupt();
      if (flags.migrate === true) await migrate({ url: database, schema });
      const sending = traces === null ? null : sendTraces(traces);
      const server = await createServer({ ...environment, database, schema, host, port, logger });
      try {
        session.shell.print(`listening at ${await server.listen()}`);
        await interrupted;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
        throw new Refusal(
          `port ${(error as { port?: number }).port ?? ""} is in use: give another with --port or PAWL_PORT`,
          { cause: error },
        );
      } finally {
        await server.close();
        await sending?.close();
      }
    }),
  );
}
