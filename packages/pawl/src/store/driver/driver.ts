/**
 * The driver, `pg`. All files that need more than its types import it from here, so that it finds
 * Node's modules in every bundle.
 */

import "./builtin-require.js";

export { default } from "pg";
