/** List and count runs, filtered, and count them per name and status. */

import type { Run } from "pawl";
import { Type } from "typebox";
import type { App } from "../http/app.js";
import type { Caller } from "../http/auth.js";
import { splitQuery } from "./input-filter.js";
import type { Backend } from "../backend/backend.js";
import { answers, strict } from "../http/schemas.js";
import { countsSchema, listQuery, nameParams, pageSchema } from "./run-schemas.js";

const filters = Object.keys(listQuery.properties);
const counted = Type.Omit(listQuery, ["cursor", "limit"]);
const explained =
  "Newest first; the cursor stays valid while runs are added. `input.<path>=<JSON or text>` filters by a member of the input, `tag.<name>=<value>` by a tag.";

export function listingRoutes(app: App, { engine }: Backend): void {
  app.get(
    "/v1/runs",
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: "listRuns",
        summary: "List runs",
        description: explained,
        tags: ["runs"],
        querystring: Type.Object(
          { name: Type.Optional(Type.String()), ...listQuery.properties },
          { additionalProperties: Type.String() },
        ),
        response: answers({ 200: pageSchema }),
      },
    },
    async (request) => {
      requireGiven(request.caller, request.query);
      return list(request, ["name", ...filters]);
    },
  );

  app.get(
    "/v1/runs/count",
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: "countRuns",
        summary: "Count runs",
        description:
          "How many runs a listing with these filters has. Reads them all: use it by hand, not in a loop.",
        tags: ["runs"],
        querystring: Type.Object(
          { name: Type.Optional(Type.String()), ...counted.properties },
          { additionalProperties: Type.String() },
        ),
        response: answers({ 200: strict({ count: Type.Integer() }) }),
      },
    },
    async (request) => {
      requireGiven(request.caller, request.query);
      const options = optionsOf(request.query, ["name", ...Object.keys(counted.properties)]);
      return { count: await engine.countRuns(options, request.caller.prefixes) };
    },
  );

  app.get(
    "/v1/workflows/:name/runs",
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: "listRunsOfWorkflow",
        summary: "List the runs of one definition",
        description: explained,
        tags: ["runs"],
        params: nameParams,
        querystring: listQuery,
        response: answers({ 200: pageSchema }),
      },
    },
    async (request) => {
      const { name } = request.params;
      requireGiven(request.caller, { name, queue: request.query.queue });
      return list(request, filters, name);
    },
  );

  let counting: ReturnType<typeof engine.store.countRuns> | undefined;
  app.get(
    "/v1/workflows",
    {
      config: { scope: "read", prefixes: "checked" },
      schema: {
        operationId: "listWorkflows",
        summary: "All names with counts per status",
        description:
          "Names of definitions that are registered or have runs. Counts every run: use it by hand, not in a loop.",
        tags: ["workflows"],
        response: answers({ 200: countsSchema }),
      },
    },
    async ({ caller }) => {
      // Requests that arrive while the database counts share the answer.
      counting ??= engine.store.countRuns().finally(() => (counting = undefined));
      return { workflows: (await counting).filter(({ name }) => caller.allows({ name, queue: null })) };
    },
  );

  async function list(
    { query, caller }: Asked,
    known: readonly string[],
    name?: string,
  ): Promise<{ runs: Run[]; cursor: string | null }> {
    const options = { ...optionsOf(query, known), ...(name === undefined ? {} : { name }) };
    const { runs, cursor } = await engine.listRuns(options, caller.prefixes);
    return { runs: [...runs], cursor };
  }
}

interface Asked {
  readonly query: Readonly<Record<string, unknown>>;
  readonly caller: Caller;
}

/** A token with prefixes lists its own runs, and may name only its own names and queues. */
function requireGiven(
  caller: Caller,
  given: { name?: string | undefined; queue?: string | undefined },
): void {
  const { name, queue } = given;
  caller.require({ ...(name === undefined ? {} : { name }), ...(queue === undefined ? {} : { queue }) });
}

function optionsOf(query: Asked["query"], known: readonly string[]): object {
  const { options, input } = splitQuery(query, known);
  return { ...options, ...(input === undefined ? {} : { input }) };
}
