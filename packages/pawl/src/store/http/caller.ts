/**
 * Calls of a server over HTTP. An answer that is not 2xx becomes the error that its problem
 * document names. No answer, or a late one, is `Unavailable`. Calls that are safe to repeat are
 * retried a few times with growing delays; other calls only if the first request certainly never
 * arrived. A call to an overloaded server is retried until its timeout. Used by the HTTP transport
 * and the HTTP worker store.
 */

import { PawlError, Unavailable } from "../../values/errors.js";
import { RetryDelay } from "../../timing/retry-delay.js";
import { isUnreachable, Overloaded, ServerFault } from "../errors.js";
import type { ServerAddress } from "./address.js";
import { toError } from "./problem.js";
import { connectTimeout, send } from "./send.js";

const defaultMs = 30_000;
const tries = 4;

export interface CallOptions {
  /** Members that are undefined or null are omitted. */
  readonly query?: Readonly<Record<string, string | number | boolean | Date | null | undefined>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Aborts the call; the promise rejects with the reason of the signal. */
  readonly signal?: AbortSignal;
  /** The timeout of the answer. Default 30 s. */
  readonly timeoutMs?: number;
  /** A second arrival changes nothing. Default: true for GET and PUT. */
  readonly repeatable?: boolean;
  /** The most attempts. Default 4. */
  readonly tries?: number;
}

/** The request certainly did not reach the server. */
class NotSent extends Unavailable {}

export class Caller {
  readonly #address: ServerAddress;

  constructor(address: ServerAddress) {
    this.#address = address;
  }

  /**
   * The decoded answer. Throws one of Pawl's errors. The type of the answer is the caller's
   * promise.
   */
  async call<Answer>(method: string, path: string, options: CallOptions = {}): Promise<Answer> {
    const { repeatable = method === "GET" || method === "PUT", tries: most = tries } = options;
    const retryDelay = new RetryDelay();
    const endMs = performance.now() + (options.timeoutMs ?? defaultMs);
    for (let count = 1; ; count++) {
      try {
        return (await this.#send(method, path, options)) as Answer;
      } catch (error) {
        const isSafe = repeatable && isUnreachable(error) && !(error instanceof ServerFault);
        const mayRepeat =
          error instanceof Overloaded
            ? performance.now() < endMs
            : (isSafe || error instanceof NotSent) && count < most;
        if (!mayRepeat || options.signal?.aborted === true) throw error;
        await new Promise((resolve) => setTimeout(resolve, retryDelay.next()));
      }
    }
  }

  async #send(method: string, path: string, options: CallOptions): Promise<unknown> {
    const { body, signal, timeoutMs = defaultMs } = options;
    signal?.throwIfAborted();
    const controller = new AbortController();
    const giveUp = (): void => controller.abort(signal?.reason);
    signal?.addEventListener("abort", giveUp, { once: true });
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      controller.abort();
    }, timeoutMs);
    try {
      const { status, text } = await send({
        method,
        url: this.#address.url + path + queryOf(options.query),
        headers: this.#headers(options),
        body: body === undefined ? undefined : JSON.stringify(body),
        signal: controller.signal,
      });
      const answer = this.#parse(text, status);
      if (status < 200 || status > 299) throw toError(status, answer, `the server at ${this.#address.url}`);
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
        { detail: "the answer is not JSON" },
        `the server at ${this.#address.url}`,
      );
    }
  }

  /** The error for a missing answer. */
  #explain(error: unknown, lateMs: number | null): PawlError {
    if (error instanceof PawlError) return error;
    const { url } = this.#address;
    if (lateMs !== null) {
      return new Unavailable(`the server at ${url} did not answer within ${lateMs} ms`, { cause: error });
    }
    const { message, code } = causeOf(error);
    const Kind = notSent.has(code) ? NotSent : Unavailable;
    return new Kind(
      `the server at ${url} cannot be reached: ${message}. Check the URL and that the server is running`,
      { cause: error },
    );
  }
}

/** Error codes of connections that were never opened. */
const notSent: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "UND_ERR_CONNECT_TIMEOUT",
  connectTimeout,
]);

interface Told {
  readonly message?: unknown;
  readonly code?: unknown;
}

interface Several extends Told {
  readonly errors?: readonly Told[];
}

/**
 * The message and code of an error. `fetch` hides them in its cause; an attempt at several
 * addresses has one error for each.
 */
function causeOf(error: unknown): { message: string; code: string } {
  const { cause, errors } = error as { cause?: Several; errors?: Several["errors"] };
  const told = [cause, cause?.errors?.[0], errors?.[0], error].filter((one) => one != null) as Told[];
  const first = (name: keyof Told): string | undefined =>
    told.map((one) => one[name]).find((text) => typeof text === "string" && text !== "") as
      | string
      | undefined;
  const code = first("code") ?? "";
  return { message: first("message") ?? code, code };
}

/** `?name=value&…`, or an empty text. */
function queryOf(query: CallOptions["query"] = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === null || value === undefined) continue;
    given.append(name, value instanceof Date ? value.toISOString() : String(value));
  }
  return given.size === 0 ? "" : `?${given.toString()}`;
}
