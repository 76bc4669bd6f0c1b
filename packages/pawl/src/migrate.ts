/**
 * `migrate`: brings the schema of a database to the version of this release, or takes it away. Safe to run again and
 * from many processes at once, so a deploy can simply call it first.
 */

import { InvalidOption } from "./define/errors.js";
import { checkInteger, checkOptions } from "./define/options.js";
import { show } from "./define/show.js";
import { checkSchemaName } from "./engine/serve-options.js";
import { givenUrl, locate } from "./locate.js";
import { migrateSchema, planSchema, schemaVersion } from "./store/postgres/migrate.js";
import type { MigrationResult } from "./store/store.js";

export interface MigrateOptions {
  /** Found as by `connect`. The role must be allowed to create the schema. */
  readonly url?: string | undefined;
  /** Default "pawl". */
  readonly schema?: string | undefined;
  /** The version to bring it to. Default: that of this release. */
  readonly to?: number | undefined;
  /** Only tell what would be done. Default false. */
  readonly dryRun?: boolean | undefined;
}

interface Migrate {
  (options?: MigrateOptions): Promise<MigrationResult>;
  /** Takes the schema down to version `to`; by default (0) all of it, with every run. */
  down(options?: MigrateOptions): Promise<MigrationResult>;
}

async function run(options: MigrateOptions, defaultTo: number): Promise<MigrationResult> {
  const given = checkOptions(options, ["url", "schema", "to", "dryRun"], "the options of migrate");
  // Version 0 means that every run is gone: only `migrate.down` says that.
  const to = checkInteger(given.to ?? defaultTo, "to", { min: Math.min(defaultTo, 1), max: schemaVersion });
  const schema = checkSchemaName(given.schema);
  const { dryRun = false } = given;
  if (typeof dryRun !== "boolean") {
    throw new InvalidOption(`dryRun must be true or false, not ${show(dryRun)}`);
  }
  const move = dryRun ? planSchema : migrateSchema;
  const database = await locate(givenUrl(given.url));
  try {
    return await move({ url: database.url, schema }, to);
  } finally {
    await database.close();
  }
}

export const migrate: Migrate = Object.assign((options: MigrateOptions = {}) => run(options, schemaVersion), {
  down: (options: MigrateOptions = {}) => run(options, 0),
});
