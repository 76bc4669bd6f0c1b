/**
 * The version of a schema: which one a database has, and whether this release can work with it.
 * This release works with a newer version unless a version in between is breaking. `connect`,
 * `serve`, `migrate` and `pawl doctor` use this file.
 */

import { Refused } from "../errors.js";
import { migrateCall, sqlState } from "./database-errors.js";
import { quoteName } from "./literals.js";

/** The version that this release of Pawl works with: the highest number in `schema/tables/`. */
export const schemaVersion = 2;

/**
 * Raise this with every release that changes functions or views but no table. A release with a
 * lower revision does not replace those of a higher one.
 */
export const functionsRevision = 1;

/**
 * The version of a schema, and whether a release that knows only `schemaVersion` can work with it.
 */
export interface FoundVersion {
  readonly version: number;
  /** The lowest breaking version after this release's version. */
  readonly breaking: number | null;
  /** The fingerprint of the functions and views. */
  readonly fingerprint: string | null;
  /** The revision of the release that applied them. */
  readonly revision: number;
}

export const noSchema: FoundVersion = { version: 0, breaking: null, fingerprint: null, revision: 0 };

/** Reads the version of the schema in this database; 0 if there is none. */
export async function readVersion(
  query: (text: string) => Promise<{ rows: FoundVersion[] }>,
  schema: string,
): Promise<FoundVersion> {
  try {
    const { rows } = await query(
      `select coalesce(max(m.version), 0)::int4 as version,
         (min(m.version) filter (where m.is_breaking and m.version > ${schemaVersion}))::int4 as breaking,
         (array_agg(m.functions order by m.version desc))[1] as fingerprint,
         coalesce((array_agg(m.revision order by m.version desc))[1], 0)::int4 as revision
       from ${quoteName(schema)}.migrations m`,
    );
    return rows[0]!;
  } catch (error) {
    if (["42P01", "3F000"].includes(sqlState(error) ?? "")) {
      return noSchema;
    }
    if (sqlState(error) === "42703") {
      throw new Refused(
        `the schema "${schema}" was made by a pre-release of Pawl; drop it (drop schema ${quoteName(schema)} cascade ` +
          `deletes every run), or use another one, and run ${migrateCall(schema)}`,
      );
    }
    throw error;
  }
}

/**
 * Throws unless the database keeps text in UTF8. A database with any other encoding could not store
 * every JSON value.
 */
export async function requireUtf8(query: (text: string) => Promise<{ rows: unknown[] }>): Promise<void> {
  const { rows } = await query("select current_setting('server_encoding') as encoding");
  const { encoding } = rows[0] as { encoding: string };
  if (encoding === "UTF8") return;
  throw new Refused(
    `Pawl needs a database with encoding UTF8, and this one has ${encoding}. Create another one with ` +
      `create database … encoding 'UTF8' template template0, and use its URL`,
  );
}

/** Says what to do if this release does not work with the schema found. Returns null if it does. */
export function explainVersion(found: FoundVersion, schema: string): Refused | null {
  const { version } = found;
  if (version >= schemaVersion) return found.breaking === null ? null : newer(found, schema);
  const call = migrateCall(schema);
  return version === 0
    ? new Refused(`the database has no schema "${schema}" of Pawl yet; run ${call} once`)
    : new Refused(
        `the schema "${schema}" is at version ${version}, this release needs ${schemaVersion}; run ${call}`,
      );
}

/** Throws if the schema is too new for this release. */
export function requireKnown(found: FoundVersion, schema: string): void {
  if (found.breaking !== null) throw newer(found, schema);
}

/**
 * The same check for a worker that runs during a migration. Takes the newest breaking version;
 * returns null if this release works with it.
 */
export function explainBreaking(breaking: number): string | null {
  if (breaking <= schemaVersion) return null;
  return (
    `this release of Pawl works with version ${schemaVersion} of the schema, and version ${breaking} is marked as ` +
    `breaking; upgrade the pawl package`
  );
}

function newer({ version, breaking }: FoundVersion, schema: string): Refused {
  return new Refused(
    `the schema "${schema}" is at version ${version}, newer than this release of Pawl knows (${schemaVersion}), and ` +
      `version ${breaking} is marked as breaking; upgrade the pawl package`,
  );
}
