/**
 * `migrate`: brings the schema of a database to the version of this release, or takes it away. Safe to run again and
 * from many processes at once, so a deploy can simply call it first.
 */

import { InvalidOption } from "../values/errors.js";
import { checkInteger, checkOptions } from "../values/options.js";
import { show } from "../values/show.js";
import { checkSchemaName } from "../worker/options.js";
import { givenUrl, locate } from "./locate.js";
import { migrateSchema, planSchema } from "../store/postgres/migrate.js";
import { schemaVersion } from "../store/postgres/schema-files.js";
import type { MigrationResult } from "../store/store.js";

export interface MigrateOptions {
  /** Found as by `connect`. The role must own the schema, or be allowed to create it. */
  readonly url?: string | undefined;
  /** Default "pawl". */
  readonly schema?: string | undefined;
  /** The version to bring it to. Default: that of this release. */
  readonly to?: number | undefined;
  /** Only tell what would be done. Default false. */
  readonly dryRun?: boolean | undefined;
  /**
   * A role that is to use the schema without owning it: it gets exactly the rights that `connect`, `serve` and the server
   * need. Later migrations grant it what they add. Not for `migrate.down`.
   */
  readonly grant?: string | undefined;
}

interface Migrate {
  (options?: MigrateOptions): Promise<MigrationResult>;
  /** Takes the schema down to version `to`; by default (0) all of it, with every run. */
  down(options?: Omit<MigrateOptions, "grant">): Promise<MigrationResult>;
}

async function run(options: MigrateOptions, defaultTo: number): Promise<MigrationResult> {
  const isDown = defaultTo === 0;
  const names = ["url", "schema", "to", "dryRun", ...(isDown ? [] : ["grant" as const])] as const;
  const given = checkOptions(options, names, "the options of migrate");
  // Version 0 means that every run is gone: only `migrate.down` says that.
  const to = checkInteger(given.to ?? defaultTo, "to", { min: Math.min(defaultTo, 1), max: schemaVersion });
  const schema = checkSchemaName(given.schema);
  const { dryRun = false } = given;
  if (typeof dryRun !== "boolean") {
    throw new InvalidOption(`dryRun must be true or false, not ${show(dryRun)}`);
  }
  const { grant } = given;
  if (grant !== undefined && (typeof grant !== "string" || !/^[^\0]+$/.test(grant))) {
    throw new InvalidOption(`grant must be the name of a role, not ${show(grant)}`);
  }
  const move = dryRun ? planSchema : migrateSchema;
  const database = await locate(givenUrl(given.url));
  try {
    return await move({ url: database.url, schema }, to, grant);
  } finally {
    await database.close();
  }
}

export const migrate: Migrate = Object.assign((options: MigrateOptions = {}) => run(options, schemaVersion), {
  down: (options: Omit<MigrateOptions, "grant"> = {}) => run(options, 0),
});
