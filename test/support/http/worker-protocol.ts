/**
 * A server and the calls of the worker protocol, for tests that speak it by hand. Every answer is compared with the OpenAPI
 * document.
 */

import { createServer, type PawlServer } from "@pawl/server";
import { connect } from "pawl";
import { Compile } from "typebox/compile";
import { afterAll, expect } from "vitest";
import { testDatabase } from "../database.js";
import { silent } from "../engine.js";
import { until } from "../until.js";
import { type ApiDocument, operationsOf } from "./openapi.js";

export const database = await testDatabase();
const { url: databaseUrl } = database;
export const { sql } = database;
/** How many claims have come to the servers of this file, and how many of those who made them have gone. */
export const seen = { arrived: 0, gone: 0 };
export async function open(): Promise<PawlServer> {
  const made = await createServer({ database: databaseUrl, port: 0, logger: silent });
  made.app.addHook("preHandler", async ({ url: path }, reply) => {
    seen.arrived += Number(path.endsWith("/claim"));
    reply.raw.once("close", () => (seen.gone += Number(!reply.raw.writableFinished)));
  });
  return made;
}
const server = await open();
export const url = await server.listen();
export const pawl = connect(databaseUrl);
afterAll(async () => {
  await pawl.close();
  await server.close();
});

/** What the OpenAPI document says that each call answers. */
const document = (await (await fetch(`${url}/v1/openapi.json`)).json()) as ApiDocument;
const answers = new Map(
  operationsOf(document)
    .filter(({ path }) => path.startsWith("/v1/workers/"))
    .map(({ path, operation }) => [
      path.replace("/v1/workers/", ""),
      Compile(operation.responses["200"]!.content!["application/json"]!.schema),
    ]),
);

interface Claimed {
  runs: { runId: string; name: string; input: string }[];
  more: boolean;
}

let count = 0;
export const newClaim = (): string => String(Date.now() * 1_000 + ++count);

export async function post<T = Record<string, unknown>>(
  path: string,
  body: unknown,
  options: { at?: string; signal?: AbortSignal } = {},
): Promise<{ status: number; body: T }> {
  const response = await fetch(`${options.at ?? url}/v1/workers/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const answer: unknown = await response.json();
  if (response.ok) expect(answers.get(path)!.Errors(answer)).toEqual([]);
  return { status: response.status, body: answer as T };
}

export async function register(workerId: string, queue: string, leaseMs = 60_000): Promise<string> {
  const definitions = [{ name: "work", version: 1, kind: "job", queue, priority: 0, retentionMs: 1_000 }];
  const answer = await post("register", { workerId, leaseMs, queues: [queue], info: {}, definitions });
  expect(answer).toEqual({ status: 200, body: {} });
  return workerId;
}

/** A claim of this worker; `waitSeconds` 0 answers at once. */
export function claim(
  workerId: string,
  queue: string,
  { limit = 1, waitSeconds = 0, claimId = newClaim(), at = url, signal }: ClaimOptions = {},
): Promise<{ status: number; body: Claimed }> {
  const definitions = [{ name: "work", version: 1 }];
  const body = { workerId, claimId, queue, limit, definitions, waitSeconds };
  return post<Claimed>("claim", body, { at, ...(signal === undefined ? {} : { signal }) });
}

interface ClaimOptions {
  limit?: number;
  waitSeconds?: number;
  claimId?: string;
  at?: string;
  signal?: AbortSignal;
}

/** How long the function `claim` waits for a lock. */
export async function setLockTimeout(timeout: string): Promise<void> {
  const [found] = await sql<{ signature: string }>(
    "select oid::regprocedure::text as signature from pg_proc where proname = 'claim' and pronamespace = 'pawl'::regnamespace",
  );
  await sql(`alter function ${found!.signature} set lock_timeout = '${timeout}'`);
}

export const start = (queue: string, input: unknown = null) =>
  pawl.start("work", input, { version: 1, queue }).then(({ runId }) => runId);

/** The same, once it waits at the server. */
export async function waitingClaim(
  ...given: Parameters<typeof claim>
): Promise<{ answer: ReturnType<typeof claim> }> {
  const before = seen.arrived;
  const answer = claim(...given);
  await until("the claim has come", () => seen.arrived > before);
  return { answer };
}

/** A queue of its own for each test. */
export const nextQueue = (): string => `q${++count}`;

// A definition that somebody has registered: its runs need not be placed first.
await register("first", "first");
