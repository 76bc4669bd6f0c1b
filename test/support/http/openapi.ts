/** An OpenAPI document, as far as the tests look into it. */

import type { TSchema } from "typebox";

interface Content {
  readonly content?: Readonly<Record<string, { readonly schema: TSchema }>>;
}

interface Operation {
  readonly operationId: string;
  readonly summary?: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: "path" | "query" | "header";
    readonly required?: boolean;
    readonly schema: TSchema;
  }[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content & { readonly description?: string }>>;
}

export interface ApiDocument {
  readonly openapi: string;
  readonly info: object;
  readonly components: {
    readonly securitySchemes: object;
    readonly schemas: Readonly<Record<string, TSchema>>;
  };
  readonly security: readonly object[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
}

export interface ListedOperation {
  readonly method: string;
  readonly path: string;
  readonly operation: Operation;
}

/** The operations, with the named components that they refer to put in their places. */
export function operationsOf({ paths, components }: ApiDocument): ListedOperation[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation: resolve(operation, components.schemas) as Operation,
    })),
  );
}

function resolve(value: unknown, schemas: ApiDocument["components"]["schemas"]): unknown {
  if (Array.isArray(value)) return value.map((item) => resolve(item, schemas));
  if (typeof value !== "object" || value === null) return value;
  const name = /^#\/components\/schemas\/(\w+)$/.exec(String((value as { $ref?: string }).$ref))?.[1];
  if (name !== undefined) return resolve(schemas[name]!, schemas);
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, resolve(member, schemas)]));
}
