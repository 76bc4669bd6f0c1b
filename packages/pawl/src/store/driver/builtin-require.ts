/**
 * Lets a bundle of ES modules load the driver, which is CommonJS. In such a bundle, esbuild passes
 * `require("events")` on to a global `require`, which ES modules do not have: the program would end
 * with `Dynamic require of "events" is not supported`. So in a bundle, and only there, this file
 * gives it one for Node's own modules. `driver.ts` imports it before the driver.
 */

import { isBundled } from "../../values/stack.js";

// A bundle in CommonJS has a `__filename`, and a `require` of its own. Bundlers rewrite `typeof require`.
if (isBundled && typeof __filename === "undefined" && !("require" in globalThis)) {
  const builtinRequire = (name: string): unknown => {
    const found: unknown = process.getBuiltinModule(name);
    if (found !== undefined) return found;
    throw new Error(`this bundle has no module "${name}": install it, or make the bundler include it`);
  };
  Object.defineProperty(globalThis, "require", {
    value: builtinRequire,
    configurable: true,
    writable: true,
    enumerable: false,
  });
}
