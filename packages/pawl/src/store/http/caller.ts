/**
 * Calls of a server over HTTP, by the `fetch` that every runtime has. An answer that is not 2xx becomes the error that its problem
 * document names; no answer, or one that takes too long, is `Unavailable`. What is safe to send twice is sent again a few times, with
 * growing waits; everything else only if it is known that the first never arrived. The base of the HTTP client and of the HTTP store.
 */

import { PawlError, Unavailable } from "../../define/errors.js";
import { Patience } from "../../engine/patience.js";
import { isUnreachable } from "../refused.js";
import type { ServerAddress } from "./address.js";
import { toError } from "./problem.js";

const defaultMs = 30_000;
const tries = 4;

export interface CallOptions {
  /** Members that are undefined or null are left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | Date | null | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Gives up; the promise rejects with the reason of the signal. */
  readonly signal?: AbortSignal;
  /** How long the answer may take. Default 30 s. */
  readonly timeoutMs?: number;
  /** A second arrival changes nothing. Default: of GET and PUT. */
  readonly repeatable?: boolean;
  /** How often it is sent at most. Default 4. */
  readonly tries?: number;
}

/** Nothing of the call has reached the server. */
class NotSent extends Unavailable {}

export class Caller {
  readonly #address: ServerAddress;

  constructor(address: ServerAddress) {
    this.#address = address;
  }

  /** The answer, decoded; throws one of Pawl's errors. The caller knows what the server answers with. */
  async call<Answer>(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const { repeatable = method === "GET" || method === "PUT", tries: most = tries } = options;
    const patience = new Patience();
    for (let count = 1; ; count++) {
      try {
        return (await this.#send(method, path, options)) as Answer;
      } catch (error) {
        const mayRepeat = error instanceof NotSent || (repeatable && isUnreachable(error));
        if (!mayRepeat || count >= most || options.signal?.aborted === true) throw error;
        await new Promise((resolve) => setTimeout(resolve, patience.next()));
      }
    }
  }

  async #send(method: string, path: string, options: CallOptions): Promise<unknown> {
    const { body, signal, timeoutMs = defaultMs } = options;
    signal?.throwIfAborted();
    const text = body === undefined ? undefined : JSON.stringify(body);
    const controller = new AbortController();
    const giveUp = (): void => controller.abort(signal?.reason);
    signal?.addEventListener("abort", giveUp, { once: true });
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      controller.abort();
    }, timeoutMs);
    try {
      const response = await fetch(this.#address.url + path + queryOf(options.query), {
        method,
        headers: this.#headers(options),
        redirect: "error",
        signal: controller.signal,
        ...(text === undefined ? {} : { body: text }),
      });
      const answer = this.#parse(await response.text(), response.status);
      if (!response.ok) throw toError(response.status, answer, `the server at ${this.#address.url}`);
      return answer;
    } catch (error) {
      signal?.throwIfAborted();
      throw this.#explain(error, isLate ? timeoutMs : null);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", giveUp);
    }
  }

  #headers({ body, headers }: CallOptions): Record<string, string> {
    const { token } = this.#address;
    return {
      accept: "application/json",
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    };
  }

  #parse(text: string, status: number): unknown {
    if (text === "") return null;
    try {
      return JSON.parse(text) as unknown;
    } catch {
      throw toError(
        status < 400 ? 502 : status,
        { detail: "the answer is no JSON" },
        `the server at ${this.#address.url}`,
      );
    }
  }

  /** What it means that there is no answer. */
  #explain(error: unknown, lateMs: number | null): PawlError {
    if (error instanceof PawlError) return error;
    const { url } = this.#address;
    if (lateMs !== null) {
      return new Unavailable(`the server at ${url} has not answered within ${lateMs} ms`, { cause: error });
    }
    const { message, code } = causeOf(error);
    const Kind = notSent.has(code) ? NotSent : Unavailable;
    return new Kind(
      `the server at ${url} cannot be reached: ${message}. Check the URL, and that the server runs`,
      { cause: error },
    );
  }
}

/** Errors of a connection that never came about. */
const notSent: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** `fetch` only says that it failed; the reason, if there is one, is the cause of its error. */
function causeOf(error: unknown): { message: string; code: string } {
  const { cause, message } = error as { cause?: { message?: unknown; code?: unknown }; message?: unknown };
  const code = typeof cause?.code === "string" ? cause.code : "";
  const reason = typeof cause?.message === "string" && cause.message !== "" ? cause.message : code;
  return { message: reason === "" ? String(message) : reason, code };
}

/** `?name=value&…`, or nothing. */
function queryOf(query: CallOptions["query"] = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined) continue;
    given.append(name, value instanceof Date ? value.toISOString() : String(value));
  }
  return given.size === 0 ? "" : `?${given.toString()}`;
}
