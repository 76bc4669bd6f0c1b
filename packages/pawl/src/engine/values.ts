/**
 * `values` of `pawl/engine`: reads and shows values as the library does. Used by the server and its
 * command.
 */

export { isDefinition, reserve } from "../define/definition.js";
export { problemOf } from "../schedules/problem.js";
export { toMilliseconds } from "../values/duration.js";
export { errorLines } from "../values/error-record.js";
export { toJson } from "../values/json.js";
export { isObject, suggest } from "../values/options.js";
export { statusOf } from "../values/phase.js";
export { show } from "../values/show.js";
