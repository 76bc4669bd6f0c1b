/** All routes of the application: which methods a path takes, for those who use another. */

import type { App } from "./app.js";

export class RouteTable {
  readonly #routes: { readonly path: RegExp; readonly methods: readonly string[] }[] = [];

  /** Before the first route is added. */
  constructor(app: App) {
    app.addHook("onRoute", ({ url, method }) => {
      this.#routes.push({ path: toPattern(url), methods: [method].flat() });
    });
  }

  /** The methods of this path; none, if there is no such route. */
  methodsAt(path: string): string[] {
    const found = this.#routes.filter((route) => route.path.test(path)).flatMap(({ methods }) => methods);
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
