import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { testServer } from "../support/server.js";
import { blocksOf, readPage, sectionOf } from "./pages.js";

const { url } = await testDatabase();
const { server, call } = await testServer({ database: url });

/** The calls that a shell would make of the lines of a block: method, path, body and headers. */
function curls(text: string) {
  return [...text.matchAll(/^curl (.*)$/gm)].map(([line, words = ""]) => ({
    line,
    method: /-X (\w+)/.exec(words)?.[1] ?? "GET",
    path: /\$PAWL(\S+)/.exec(words)?.[1] ?? "",
    body: /-d '([^']*)'/.exec(words)?.[1],
    headers: Object.fromEntries(
      [...words.matchAll(/-H '([\w-]+): ([^']*)'/g)].map(([, name = "", value = ""]) => [name, value]),
    ),
  }));
}

describe("docs/server.md", () => {
  const calls = blocksOf("docs/server.md")
    .filter(({ language }) => language === "sh")
    .flatMap(({ text }) => curls(text));

  it("has calls of curl that do what they say, one after the other", async () => {
    expect(calls.length).toBeGreaterThan(10);
    let runId = "";
    for (const { line, method, path, body, headers } of calls) {
      const given = body === undefined ? undefined : (JSON.parse(body) as unknown);
      const answer = await call(method, path.replace("$RUN", runId), given, headers);
      expect(answer.status, line).toBeLessThan(300);
      if (runId === "") runId = (answer.body as { runId: string }).runId;
    }
  });

  it("lists every route", () => {
    const table = sectionOf("docs/server.md", "Routes");
    const listed = new Set([...table.matchAll(/`([A-Z]+ \/[^`]*)`/g)].map(([, route = ""]) => route));
    const below = "/v1/workflows/{name}/runs/{id}";
    const routes = server.routes
      .filter(({ method }) => method !== "HEAD")
      .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`)
      .filter((route) => !route.includes(below));
    // Those of workers, queues and topics have pages of their own.
    const own = routes.filter(
      (route) => !/ \/(metrics|v1\/(workers\/|queues|topics|subscriptions))/.test(route),
    );
    expect([...listed].toSorted()).toEqual(own.toSorted());
  });

  it("names every code that the server answers with", () => {
    const table = sectionOf("docs/server.md", "Problems");
    for (const code of [
      "BadRequest",
      "Internal",
      "MethodNotAllowed",
      "RequestTimeout",
      "RouteNotFound",
      "UnsupportedMediaType",
    ]) {
      expect(table).toContain(`\`${code}\``);
    }
    expect(readPage("docs/server.md")).toContain("[security](security.md");
  });
});
