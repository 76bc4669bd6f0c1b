/**
 * A hook of Node's module loader, in the loader's thread: reports the path of every loaded module.
 */

import type { InitializeHook, LoadHook } from "node:module";
import { fileURLToPath } from "node:url";
import type { MessagePort } from "node:worker_threads";

let port: MessagePort | undefined;

export const initialize: InitializeHook<MessagePort> = (given) => {
  port = given;
};

export const load: LoadHook = (url, context, nextLoad) => {
  if (url.startsWith("file:")) port?.postMessage(fileURLToPath(url));
  return nextLoad(url, context);
};
