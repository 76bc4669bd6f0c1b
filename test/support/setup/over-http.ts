/** Skips, over HTTP, the laws that are none of that transport. */

import { basename } from "node:path";
import { beforeEach } from "vitest";
import { testsApart } from "./transports.js";

beforeEach((context) => {
  const file = basename(context.task.file.filepath);
  const reason = testsApart[file]?.[context.task.name];
  if (reason !== undefined) context.skip(reason);
});
