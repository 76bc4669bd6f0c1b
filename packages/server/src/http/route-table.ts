/**
 * All routes of the application with their scopes. Also says which methods a path supports, for
 * status 405.
 */

import type { App, RouteScope } from "./app.js";

export interface Route {
  readonly method: string;
  /** Such as `/v1/runs/:id`. */
  readonly path: string;
  /** "any": a token of any scope; "open": no token. */
  readonly scope: RouteScope;
}

export class RouteTable {
  readonly list: Route[] = [];

  /** Call it before the first route is added. */
  constructor(app: App) {
    app.addHook("onRoute", ({ url: path, method, config }) => {
      const scope = config?.scope ?? "admin";
      this.list.push(...[method].flat().map((one) => ({ method: one, path, scope })));
    });
  }

  /** The methods of this path; none if there is no such route. */
  methodsAt(path: string): string[] {
    const found = this.list.filter((route) => toPattern(route.path).test(path)).map(({ method }) => method);
    return [...new Set(found)].toSorted();
  }
}

/** `/v1/runs/:id` as a regular expression. */
function toPattern(url: string): RegExp {
  const parts = url
    .split("/")
    .map((part) =>
      part.startsWith(":")
        ? "[^/]+"
        : part === "*"
          ? ".*"
          : part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`),
    );
  return new RegExp(`^${parts.join("/")}$`);
}
