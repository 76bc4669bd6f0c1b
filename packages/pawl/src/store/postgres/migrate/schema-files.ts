/**
 * The SQL of the schema, from the files in `schema/`. A build makes a module of them
 * (`scripts/generate.js`), which only a migration loads. Tables and changes of data are numbered files
 * (`tables/0001_runs.sql`), never edited after a release. All files of one number are one version.
 * Functions and views belong to the newest version, and each migration applies them whole. The
 * first line of a file is a marker that says how to apply it:
 *
 *     -- pawl: table; grant select, insert       rights of roles that use the schema; `breaking`
 *     -- pawl: call; lock_timeout 100ms          a function that TypeScript or users call
 *     -- pawl: call; custom plans                the same, planned anew with the given filters
 *     -- pawl: inner                             a function that only other functions call
 *     -- pawl: view; grant select
 *
 * `migrate`, the grants, and the template databases of `pawl/testing` use this file.
 */

import { createHash } from "node:crypto";
import { functionsRevision } from "../version.js";

export interface SchemaFile {
  readonly name: string;
  readonly text: string;
  readonly kind: "table" | "call" | "inner" | "view";
  /** The text after the kind in the marker: `lock_timeout 100ms`, `breaking`, … */
  readonly notes: readonly string[];
}

export interface Schema {
  /** The tables of each version, from version 1 on. */
  readonly versions: readonly (readonly SchemaFile[])[];
  readonly functions: readonly SchemaFile[];
  readonly views: readonly SchemaFile[];
  /** Distinguishes the functions and views of two releases. */
  readonly fingerprint: string;
  /** Orders the functions of releases that have the same tables. */
  readonly revision: number;
}

let read: Promise<Schema> | undefined;

export function readSchema(): Promise<Schema> {
  read ??= import("../../../generated/schema.js").then(({ sqlFiles }) => toSchema(sqlFiles));
  return read;
}

function toSchema(sqlFiles: Readonly<Record<string, string>>): Schema {
  const tables = filesIn("tables/", sqlFiles);
  const functions = filesIn("functions/", sqlFiles);
  const views = filesIn("views/", sqlFiles);
  const versions: SchemaFile[][] = [];
  for (const file of tables) {
    const version = Number(/^\d{4}(?=_)/.exec(file.name)?.[0]);
    if (!(version >= 1)) throw new Error(`tables/${file.name} must be called like 0001_runs.sql`);
    (versions[version - 1] ??= []).push(file);
  }
  for (let index = 0; index < versions.length; index++) {
    if (versions[index] === undefined) throw new Error(`tables/ has no file of version ${index + 1}`);
  }
  const hash = createHash("sha256");
  for (const { name, text } of [...functions, ...views]) hash.update(`${name}\0${text}\0`);
  return {
    versions,
    functions,
    views,
    fingerprint: hash.digest("hex").slice(0, 16),
    revision: functionsRevision,
  };
}

export function isBreaking(files: readonly SchemaFile[]): boolean {
  return files.some(({ notes }) => notes.includes("breaking"));
}

/** Returns the rights on each table and view for a role that uses the schema without owning it. */
export function tableRights({ versions, views }: Schema): Map<string, string> {
  const rights = new Map([["migrations", "select"]]);
  for (const { text, notes } of [...versions.flat(), ...views]) {
    const granted = notes.find((note) => note.startsWith("grant "))?.slice("grant ".length);
    for (const [, name] of text.matchAll(/^create (?:table|or replace view) (\w+)/gm)) {
      if (granted !== undefined) rights.set(name!, granted);
    }
  }
  return rights;
}

/** Returns the file that makes each function. Overloads of a name are of one kind. */
export function functionFiles({ functions }: Schema): Map<string, SchemaFile> {
  const files = new Map<string, SchemaFile>();
  for (const file of functions) {
    for (const [, name] of file.text.matchAll(/^create or replace function (\w+)/gm)) files.set(name!, file);
  }
  return files;
}

/** The files of a folder and its subfolders, by their name in it. */
function filesIn(folder: string, sqlFiles: Readonly<Record<string, string>>): SchemaFile[] {
  return Object.entries(sqlFiles)
    .filter(([path]) => path.startsWith(folder))
    .map(([path, text]) => toFile(path.slice(folder.length), text));
}

function toFile(name: string, text: string): SchemaFile {
  const [kind, ...notes] = (/^-- pawl: (.*)\n/.exec(text)?.[1] ?? "").split("; ");
  if (kind !== "table" && kind !== "call" && kind !== "inner" && kind !== "view") {
    throw new Error(`${name} must begin with a marker, like "-- pawl: inner"`);
  }
  return { name, text, kind, notes };
}
