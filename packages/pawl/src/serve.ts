/**
 * `serve`: starts a worker for a list of definitions. Options are checked before anything is opened, so a mistake
 * throws where it was written; what needs the database is reported by `worker.ready`.
 */

import type { AnyDefinition } from "./define/definition.js";
import { checkServe, type ServeOptions } from "./engine/serve-options.js";
import { Worker } from "./engine/worker.js";
import { givenUrl, locateSchema } from "./locate.js";

/** Serves these definitions until `worker.stop()`. Installs no process signal handlers. */
export function serve(definitions: readonly AnyDefinition[], options: ServeOptions = {}): Worker {
  const settings = checkServe(definitions, options);
  const url = givenUrl(settings.url);
  return new Worker(settings, () => locateSchema(url, settings.schema));
}
