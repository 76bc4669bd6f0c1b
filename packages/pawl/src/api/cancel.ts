/** `runs.cancel` for both transports: its options. */

import { InvalidOption } from "../values/errors.js";
import { checkOptions, checkString } from "../values/options.js";
import { show } from "../values/show.js";

/** What is asked for; no reason is null. */
export function checkCancel(options: unknown): { reason: string | null; cascade: boolean } {
  const { reason, cascade = false } = checkOptions(
    options,
    ["reason", "cascade"],
    "the options of runs.cancel",
  );
  if (typeof cascade !== "boolean") {
    throw new InvalidOption(`cascade must be true or false, not ${show(cascade)}`);
  }
  return {
    reason: reason === undefined ? null : checkString(reason, "reason", { maxBytes: 8_192 }),
    cascade,
  };
}
