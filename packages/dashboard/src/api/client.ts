/**
 * Calls of the REST API, and the token to show to it. The token is in memory and in the storage of
 * this tab, never in an address. A refused call asks for one (`parts/token.tsx`).
 */

import { signal } from "@preact/signals";
import { setServerTime } from "./clock.js";

const tokenKey = "pawl.token";

export const token = signal(sessionStorage.getItem(tokenKey));
/** Why the server wants a token; null: it has not asked. */
export const tokenWanted = signal<string | null>(null);
/** The app around the dashboard decides who may see it: a token would not help. */
export const isAppAsked = signal(false);

export function setToken(value: string | null): void {
  if (value === null) sessionStorage.removeItem(tokenKey);
  else sessionStorage.setItem(tokenKey, value);
  tokenWanted.value = null;
  token.value = value;
}

/** The server refused a call, or could not be reached (status 0). */
export class ApiProblem extends Error {
  readonly status: number;
  readonly code: string;
  /** The id of the request, to find it in the server's log. */
  readonly instance: string | null;

  constructor(status: number, code: string, detail: string, instance: string | null = null) {
    super(detail);
    this.status = status;
    this.code = code;
    this.instance = instance;
  }
}

export interface Call {
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  /** Sent as the header idempotency-key. */
  readonly dedupKey?: string;
  readonly signal?: AbortSignal;
}

/** The path of the dashboard on its server, with a slash at the end. */
export const base = new URL(document.baseURI).pathname;

/** A path of the API with its query, as in `v1/runs?status=failed`. */
function apiPath(path: string, query: Call["query"] = {}): string {
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? path : `${path}?${new URLSearchParams(given).toString()}`;
}

export async function call<Answer>(path: string, options: Call = {}): Promise<Answer> {
  return (await send(path, options)).json() as Promise<Answer>;
}

export async function callText(path: string, options: Call = {}): Promise<string> {
  return (await send(path, options)).text();
}

/** A stream of server-sent events, from after the event with this id on. */
export async function callStream(
  path: string,
  options: Call,
  lastEventId: string | null,
): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  const { body } = await send(path, options, lastEventId === null ? {} : { "last-event-id": lastEventId });
  if (body === null) throw new ApiProblem(0, "Unreachable", "The stream of changes has ended.");
  return body;
}

async function send(path: string, options: Call, more: Record<string, string> = {}): Promise<Response> {
  const { method = "GET", query, body, dedupKey, signal: aborted } = options;
  const headers: Record<string, string> = { "x-pawl-dashboard": "1", ...more };
  if (token.value !== null) headers["authorization"] = `Bearer ${token.value}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  if (dedupKey !== undefined) headers["idempotency-key"] = dedupKey;
  let answer: Response;
  try {
    answer = await fetch(base + apiPath(path, query), {
      method,
      headers,
      credentials: "same-origin",
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(aborted === undefined ? {} : { signal: aborted }),
    });
  } catch (error) {
    if (aborted?.aborted === true) throw error;
    throw new ApiProblem(0, "Unreachable", "The server cannot be reached. Is it running?");
  }
  setServerTime(answer.headers.get("date"));
  if (answer.ok) return answer;
  const problem = await readProblem(answer);
  if (problem.status === 401) {
    isAppAsked.value = answer.headers.get("www-authenticate") === null;
    tokenWanted.value = problem.message;
  }
  throw problem;
}

async function readProblem(answer: Response): Promise<ApiProblem> {
  try {
    const { code, detail, instance } = (await answer.json()) as Record<string, string>;
    return new ApiProblem(answer.status, code ?? "Internal", detail ?? answer.statusText, instance ?? null);
  } catch {
    return new ApiProblem(answer.status, "Internal", `The server answered ${answer.status}.`);
  }
}
