/**
 * Named components of the OpenAPI document: moves every schema with a title to `components.schemas`
 * and leaves a reference in its place, so that generated code has named types. Called by
 * `openapi.ts`.
 */

import { isDeepStrictEqual } from "node:util";
import { values } from "pawl/engine";

/** Two different schemas must not share a title. */
export function nameComponents<Document extends object>(document: Document): Document {
  const schemas: Record<string, unknown> = {};
  const visit = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(visit);
    if (!values.isObject(value)) return value;
    const visited = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, visit(member)]));
    if (!isTitledSchema(visited)) return visited;
    const { title } = visited;
    if (title in schemas && !isDeepStrictEqual(schemas[title], visited))
      throw new Error(`two schemas with the title ${title} differ: give each its own title`);
    schemas[title] = visited;
    return { $ref: `#/components/schemas/${title}` };
  };
  const { components, ...rest } = document as { components?: object };
  return { ...(visit(rest) as Document), components: { ...components, schemas } };
}

/** The title of the document, or a member called "title", names no schema. */
function isTitledSchema(value: Readonly<Record<string, unknown>>): value is { title: string } {
  const isSchema = "type" in value || "anyOf" in value;
  return isSchema && typeof value["title"] === "string" && /^[A-Z][A-Za-z]*$/.test(value["title"]);
}
