/**
 * Runs one statement on the server through its unix socket, in PostgreSQL's own protocol. The
 * launcher needs only four small statements, which does not justify a driver. The socket trusts its
 * user, so there is no authentication to implement.
 */
import { connect } from "node:net";

const longestQueryMs = 60_000;

/** Answers with the rows, every column as text. */
export function queryOverSocket(socketPath: string, database: string, sql: string): Promise<string[][]> {
  return new Promise((resolve, reject) => {
    const rows: string[][] = [];
    let pending = Buffer.alloc(0);
    let isQuerySent = false;
    let refusal: Error | undefined;
    const socket = connect(socketPath, () => socket.write(startupMessage(database)));
    socket.setTimeout(longestQueryMs, () => socket.destroy(new Error(`no answer from ${socketPath}`)));
    socket.once("error", reject);
    socket.once("close", () =>
      reject(refusal ?? new Error(`the server closed the connection on ${socketPath}`)),
    );
    socket.on("data", (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      while (pending.length >= 5 && pending.length > pending.readUInt32BE(1)) {
        const end = 1 + pending.readUInt32BE(1);
        const kind = String.fromCharCode(pending[0] ?? 0);
        const body = pending.subarray(5, end);
        pending = pending.subarray(end);
        if (kind === "E") refusal = readRefusal(body);
        if (kind === "D") rows.push(readRow(body));
        if (kind !== "Z") continue; // everything else leads up to "ready for query"
        if (!isQuerySent) {
          isQuerySent = true;
          socket.write(typedMessage("Q", `${sql}\0`));
          continue;
        }
        socket.end(typedMessage("X", ""));
        if (refusal) reject(refusal);
        else resolve(rows);
      }
    });
  });
}

export function quoteIdentifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

export function quoteLiteral(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function startupMessage(database: string): Buffer {
  const protocolVersion = Buffer.from([0, 3, 0, 0]);
  const parameters = Buffer.from(
    `user\0postgres\0database\0${database}\0application_name\0local-postgres\0\0`,
  );
  return withLength(Buffer.concat([protocolVersion, parameters]));
}

function typedMessage(kind: string, text: string): Buffer {
  return Buffer.concat([Buffer.from(kind), withLength(Buffer.from(text))]);
}

function withLength(body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length + 4);
  return Buffer.concat([length, body]);
}

/** Fields of an error: one letter, then text up to a zero byte. */
function readRefusal(body: Buffer): Error {
  const fields = body.toString("utf8").split("\0");
  const message = fields.find((field) => field.startsWith("M"))?.slice(1);
  return new Error(`PostgreSQL refused: ${message ?? "without a reason"}`);
}

function readRow(body: Buffer): string[] {
  const columns: string[] = [];
  let offset = 2;
  for (let column = 0; column < body.readUInt16BE(0); column++) {
    const length = Math.max(body.readInt32BE(offset), 0); // -1 is null, which none of our statements returns
    columns.push(body.toString("utf8", offset + 4, offset + 4 + length));
    offset += 4 + length;
  }
  return columns;
}
