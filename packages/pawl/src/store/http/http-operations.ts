/**
 * Bulk operations and the action log through a server. Only encodes and decodes. Used by the HTTP
 * transport.
 */

import type { ActionFilter, StoredAction, StoredBulk, StoredBulkResult } from "../client-store.js";
import type { BulkTransport, RunQuery } from "../client-transport.js";
import { OperationNotFound } from "../../values/errors.js";
import { fromJson } from "../../values/json.js";
import type { Caller } from "./caller.js";
import type { DatesAsText } from "./dates.js";

type SentBulk = DatesAsText<StoredBulk>;

export function httpBulk(caller: Caller): BulkTransport {
  return {
    start: async ({ query, action, settings }) => {
      const { input, state, payload, ...rest } = settings;
      const body = {
        where: whereOf(query),
        all: true,
        action,
        ...rest,
        ...(input === undefined ? {} : { input: fromJson(input) }),
        ...(state === undefined ? {} : { state: fromJson(state) }),
        ...(payload === undefined ? {} : { payload: fromJson(payload) }),
      };
      return readBulk(await caller.call<SentBulk>("POST", "/v1/bulk", { body }));
    },
    get: async (id) => {
      try {
        return readBulk(await caller.call<SentBulk>("GET", `/v1/bulk/${id}`));
      } catch (error) {
        if (error instanceof OperationNotFound) return null;
        throw error;
      }
    },
    list: async ({ before, limit }) => {
      const { operations } = await caller.call<{ operations: SentBulk[] }>("GET", "/v1/bulk", {
        query: { cursor: before, limit },
      });
      return operations.map(readBulk);
    },
    results: async (id, { outcome, after, limit }) => {
      const { results } = await caller.call<{ results: StoredBulkResult[] }>(
        "GET",
        `/v1/bulk/${id}/results`,
        { query: { outcome, cursor: after, limit } },
      );
      return results;
    },
    stop: async (id) => {
      await caller.call("DELETE", `/v1/bulk/${id}`);
      return true;
    },
  };
}

export async function httpActions(caller: Caller, filter: ActionFilter): Promise<StoredAction[]> {
  const { before: cursor, ...query } = filter;
  const { actions } = await caller.call<{ actions: DatesAsText<StoredAction>[] }>("GET", "/v1/actions", {
    query: { ...query, cursor },
  });
  return actions.map((action) => ({ ...action, at: new Date(action.at) }));
}

/** The filters that are set. */
function whereOf({ input, ...query }: RunQuery): object {
  const set = Object.entries(query).filter(([, value]) => value !== null && value !== false);
  return { ...Object.fromEntries(set), ...(input === null ? {} : { input: fromJson(input) }) };
}

function readBulk(sent: SentBulk): StoredBulk {
  const { startedAt, completedAt } = sent;
  return {
    ...sent,
    startedAt: new Date(startedAt),
    completedAt: completedAt === null ? null : new Date(completedAt),
  };
}
