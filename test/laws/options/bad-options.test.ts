import { InvalidOption, job, type StartOptions } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";

const database = await testDatabase();
const { pawl } = testEngine(database);
const { sql } = database;

const parked = job({ name: "parked", queue: "nobody", run: () => 0 });
const manyTags = Object.fromEntries(Array.from({ length: 17 }, (_, index) => [`tag${index}`, "x"]));
const keyed = { key: "k", delay: "1s" } as const;

describe("start refuses", () => {
  it.each<[string, unknown, RegExp]>([
    ["17 tags", { tags: manyTags }, /at most 16 tags, not 17/],
    ["a tag that is a number", { tags: { customer: 42 } }, /the tag customer must be a string, not 42/],
    [
      "a tag of 257 bytes",
      { tags: { a: "é".repeat(129) } },
      /the tag a must be at most 256 bytes long, not 258/,
    ],
    [
      "a tag with a space in its name",
      { tags: { "a b": "1" } },
      /the name of a tag must be 1 to 128 characters/,
    ],
    ["tags that are a list", { tags: ["a"] }, /tags must be an object of names and texts/],
    ["a timeout of 0", { timeout: 0 }, /timeout must be longer than 0, not 0/],
    ["a timeout that is no duration", { timeout: "soon" }, /timeout must be a duration/],
    ["debounce with a unique key", { debounce: keyed, uniqueKey: "u" }, /debounce or uniqueKey, not both/],
    [
      "debounce with an idempotency key",
      { debounce: keyed, idempotencyKey: "i" },
      /debounce or idempotencyKey/,
    ],
    ["debounce with a delay", { debounce: keyed, delay: "1s" }, /debounce or delay, not both: debounce sets/],
    ["debounce with a time", { debounce: keyed, at: new Date() }, /debounce or at, not both/],
    ["debounce without a key", { debounce: { delay: "1s" } }, /the key of debounce must be a string/],
    ["debounce without a delay", { debounce: { key: "k" } }, /debounce needs delay/],
    [
      "a maxDelay that is shorter than the delay",
      { debounce: { key: "k", delay: "2s", maxDelay: "1s" } },
      /maxDelay of debounce must be at least its delay of "2s", not "1s"/,
    ],
    ["an unknown member of debounce", { debounce: { ...keyed, max: 1 } }, /unknown option "max" in debounce/],
    ["an empty correlation key", { correlationKey: "" }, /correlationKey must be a string that is not empty/],
    [
      "a correlation key of 513 bytes",
      { correlationKey: "x".repeat(513) },
      /at most 512 bytes long, not 513/,
    ],
    ["a concurrency limit that is a number", { concurrency: 3 }, /concurrency must be the name of a limit/],
    ["a concurrency limit without its key", { concurrency: { name: "gpu" } }, /concurrency .* has no key/],
  ])("%s", async (_what, options, message) => {
    const refused = await pawl.start(parked, null, options as StartOptions).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(InvalidOption);
    expect((refused as InvalidOption).message).toMatch(message);
    expect(await sql("select id from runs")).toEqual([]);
  });

  it("a definition whose timeout is 0", () => {
    expect(() => job({ name: "hasty", timeout: "0s", run: () => 0 })).toThrow(
      /timeout must be longer than 0/,
    );
  });
});

describe("the database refuses, whatever way a start came", () => {
  it.each<[string, object, object, RegExp]>([
    ["17 tags", { tags: manyTags }, {}, /at most 16 tags/],
    ["a tag that is no text", { tags: { a: 1 } }, {}, /must be a text of at most 256 bytes/],
    ["a timeout of 0", { timeoutMs: 0 }, {}, /a timeout is longer than 0/],
    [
      "debounce with a unique key",
      { debounce: { key: "k", delayMs: 1 } },
      { unique_key: "\\x01" },
      /debounce, or a unique or idempotency key/,
    ],
    [
      "debounce with a delay",
      { debounce: { key: "k", delayMs: 1 } },
      { delay_ms: 1 },
      /debounce, or delay or at/,
    ],
    ["debounce without a delay", { debounce: { key: "k" } }, {}, /debounce needs a key/],
    ["a long correlation key", { correlationKey: "x".repeat(513) }, {}, /1 to 512 bytes/],
  ])("%s", async (_what, options, members, message) => {
    const run = {
      name: "parked",
      version: 1,
      kind: "job",
      input: "null",
      options: JSON.stringify(options),
      ...members,
    };
    await expect(
      sql("select * from new_runs($1, array[null::bigint], array[null::int], array[null::int])", [
        JSON.stringify([run]),
      ]),
    ).rejects.toThrow(message);
  });
});
