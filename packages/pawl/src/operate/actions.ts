/**
 * `pawl.actions`: reads the action log, who has done what and when. Checks the filters. Used by the
 * client.
 */

import type { ActionFilter, StoredAction } from "../store/client-store.js";
import { InvalidOption } from "../values/errors.js";
import { checkInteger, checkOptions, checkString } from "../values/options.js";
import { isRunId } from "../values/run-id.js";
import { show } from "../values/show.js";
import { checkDate } from "../run/new-run.js";

/** A line of the action log. */
export type Action = StoredAction;

export interface ActionOptions {
  /** The name of a token, or "local". */
  readonly who?: string | undefined;
  /** The action, such as "runs.cancel". */
  readonly action?: string | undefined;
  /** The id of a run or an operation, or the name of a limit. */
  readonly target?: string | undefined;
  readonly since?: Date | string | undefined;
  readonly until?: Date | string | undefined;
  /** The `cursor` of the page before. */
  readonly cursor?: string | undefined;
  /** 1 to 1,000. Default 100. */
  readonly limit?: number | undefined;
}

export interface ActionPage {
  /** Newest first. */
  readonly actions: Action[];
  /** Pass it to `actions.list` to get the next page; null on the last page. */
  readonly cursor: string | null;
}

/** The action log. */
export interface Actions {
  /** A page of the log, newest first. */
  list(options?: ActionOptions): Promise<ActionPage>;
}

export function actionsOver(
  transport: () => Promise<{ actions(filter: ActionFilter): Promise<StoredAction[]> }>,
): Actions {
  return {
    list: async (options = {}) => {
      const filter = toFilter(options);
      const actions = await (await transport()).actions(filter);
      const last = actions.length === filter.limit ? actions.at(-1) : undefined;
      return { actions, cursor: last?.id ?? null };
    },
  };
}

function toFilter(options: unknown): ActionFilter {
  const names = ["who", "action", "target", "since", "until", "cursor", "limit"] as const;
  const {
    since,
    until,
    cursor,
    limit = 100,
    ...texts
  } = checkOptions(options, names, "the options of actions.list");
  const text = (name: "who" | "action" | "target"): string | null =>
    texts[name] === undefined ? null : checkString(texts[name], name, { maxBytes: 512 });
  if (cursor !== undefined && !isRunId(cursor)) {
    throw new InvalidOption(`cursor must be an unchanged cursor of actions.list, not ${show(cursor)}`);
  }
  return {
    who: text("who"),
    action: text("action"),
    target: text("target"),
    since: since === undefined ? null : checkDate(since, "since"),
    until: until === undefined ? null : checkDate(until, "until"),
    before: cursor ?? null,
    limit: checkInteger(limit, "limit", { min: 1, max: 1_000 }),
  };
}
