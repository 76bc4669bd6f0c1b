/** `check` of `pawl/engine`: the library's checks of options and names. Used by the server. */

export { checkPattern as topicPattern } from "../values/names.js";
export { checkRunId as runId } from "../values/run-id.js";
export {
  checkInteger as integer,
  checkOptions as options,
  checkString as string,
} from "../values/options.js";
export { checkTimes as scheduleTimes, refuseOwnOptions as scheduledOptions } from "../schedules/options.js";
export { checkTraceparent as traceparent } from "../observe/tracing.js";
export {
  checkLogger as logger,
  checkMaxPayload as maxPayload,
  checkSchemaName as schemaName,
} from "../worker/options.js";
export { checkUrl as databaseUrl } from "../store/postgres/database.js";
