/**
 * The rights of the person who uses the dashboard, from `GET /v1/me`, and the parts that the operator
 * has switched off for everybody. A button is shown only to people who may use it. This only spares
 * them a refusal: the API checks every call.
 */

import { effect, signal } from "@preact/signals";
import { ApiProblem, call, token } from "./client.js";

export type Scope = "start" | "read" | "write" | "worker" | "admin";

export interface Me {
  /** The name of the token; null: the server uses none. */
  readonly name: string | null;
  readonly scopes: readonly Scope[];
  /** Prefixes of names and queues that the token reaches; null: all. */
  readonly names: readonly string[] | null;
  readonly queues: readonly string[] | null;
}

const words = (document.querySelector<HTMLMetaElement>('meta[name="pawl"]')?.content ?? "").split(" ");
/** The operator wants no buttons that change something. */
const isReadOnly = words.includes("read-only");
/** The server leaves payloads out of its answers. */
export const hidesPayloads = words.includes("hidden-payloads");

/** Null: not known yet. */
export const me = signal<Me | null>(null);

/** Whether the token has this scope. */
export const has = (scope: Scope): boolean => me.value?.scopes.includes(scope) ?? false;

/** Whether to show a button that needs this scope. */
export const may = (scope: Scope): boolean => !isReadOnly && has(scope);

/** Whether the token may see some names or queues only. */
export const isLimited = (): boolean =>
  me.value !== null && (me.value.names !== null || me.value.queues !== null);

const againMs = 5_000;

/** Reads the rights of each new token. Call it once. */
export function followToken(): void {
  effect(() => {
    const shown = token.value;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async (): Promise<void> => {
      try {
        const answer = await call<Me>("v1/me");
        if (token.peek() === shown) me.value = answer;
      } catch (error) {
        me.value = null;
        // A refused token asks for another one; an outage passes.
        if (!(error instanceof ApiProblem && error.status === 401))
          timer = setTimeout(() => void read(), againMs);
      }
    };
    void read();
    return () => clearTimeout(timer);
  });
}
