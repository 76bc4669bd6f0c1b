/** Skips, over HTTP, the laws that are none of that transport. */

import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach } from "vitest";
import { testsApart } from "./transports.js";

const laws = fileURLToPath(new URL("../../laws", import.meta.url));

beforeEach((context) => {
  const file = relative(laws, context.task.file.filepath);
  const reason = testsApart[file]?.[context.task.name];
  if (reason !== undefined) context.skip(reason);
});
