/** The path under which an app mounts the handler, and the path of a request below it. */

import { InvalidOption } from "pawl";
import { values } from "pawl/engine";

/** Returns it without a slash at its end: "" for the root. */
export function checkBasePath(given: unknown): string {
  if (given === undefined) return "";
  // Safe in HTML and in headers; a URL with other characters would have them escaped.
  if (typeof given !== "string" || !/^(\/[\w.~-]+)*\/?$/.test(given) || /\/\.{1,2}(\/|$)/.test(given)) {
    throw new InvalidOption(
      `basePath must be a path such as "/admin/pawl", of letters, digits and - . _ ~, not ${values.show(given)}`,
    );
  }
  return given.replace(/\/$/, "");
}

/** The part of a URL below this path, with its query; null: it is outside. */
export function below(basePath: string, url: string): string | null {
  if (!url.startsWith(basePath)) return null;
  const rest = url.slice(basePath.length);
  if (rest === "" || rest.startsWith("?")) return `/${rest}`;
  return rest.startsWith("/") ? rest : null;
}
