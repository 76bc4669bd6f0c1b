/**
 * `migrate`: brings the schema of a database to the version of this release, or removes it. It is
 * safe to run it again, and in many processes at once, so a deployment can simply call it first.
 */

import { InvalidOption } from "../values/errors.js";
import { checkInteger, checkOptions } from "../values/options.js";
import { show } from "../values/show.js";
import { checkSchemaName } from "../worker/options.js";
import { givenSource, locate } from "./locate.js";
import type { DatabaseSource } from "../store/driver/source-types.js";
import { migrateSchema, planSchema } from "../store/postgres/migrate/migrate.js";
import { schemaVersion } from "../store/postgres/version.js";
import type { MigrationResult } from "../store/store.js";

export interface MigrateOptions {
  /** Default: as for `connect`. The role must own the schema, or be allowed to create it. */
  readonly url?: DatabaseSource | undefined;
  /** Default "pawl". */
  readonly schema?: string | undefined;
  /** The target version. Default: that of this release. */
  readonly to?: number | undefined;
  /** Only report the steps, change nothing. Default false. */
  readonly dryRun?: boolean | undefined;
  /**
   * A role that uses the schema without owning it. It gets exactly the rights that `connect`,
   * `serve` and the server need. Later migrations extend them. Not for `migrate.down`.
   */
  readonly grant?: string | undefined;
}

interface Migrate {
  (options?: MigrateOptions): Promise<MigrationResult>;
  /** Migrates down to version `to`. By default (0) it removes the whole schema, with every run. */
  down(options?: Omit<MigrateOptions, "grant">): Promise<MigrationResult>;
}

async function run(options: MigrateOptions, defaultTo: number): Promise<MigrationResult> {
  const isDown = defaultTo === 0;
  const names = ["url", "schema", "to", "dryRun", ...(isDown ? [] : ["grant" as const])] as const;
  const given = checkOptions(options, names, "the options of migrate");
  // Version 0 deletes every run: only `migrate.down` may do that.
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
  const database = await locate(givenSource(given.url));
  try {
    return await move({ url: database.url, schema }, to, grant);
  } finally {
    await database.close();
  }
}

export const migrate: Migrate = Object.assign((options: MigrateOptions = {}) => run(options, schemaVersion), {
  down: (options: Omit<MigrateOptions, "grant"> = {}) => run(options, 0),
});
