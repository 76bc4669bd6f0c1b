import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../support/database.js";
import { root } from "./pages.js";
import { runProgram } from "./program.js";

const require = createRequire(import.meta.url);
const source = join(root, "examples/src");
const { url } = await testDatabase();

/** What each example prints. */
const printed: Record<string, string> = {
  saga: `booked a flight for Lisbon
booked a hotel for Lisbon
booked a car for Lisbon
{
  booked: true,
  bookings: [ 'flight to Lisbon', 'hotel to Lisbon', 'car to Lisbon' ]
}
booked a flight for Venice
booked a hotel for Venice
cancelled the car: there was nothing to cancel
cancelled the hotel: it was booked
cancelled the flight: it was booked
{
  booked: false,
  because: 'step "book-car" failed: there are no cars in Venice'
}
`,
  approval: `{ by: 'the rule for small amounts', approved: true }
to boss: may Grace spend 900 euros?
to Grace: yes, says Barbara
{ by: 'Barbara', approved: true }
to boss: may Alan spend 60 euros?
to boss: Alan still waits for an answer
to Alan: no, says nobody in time
{ by: 'nobody in time', approved: false }
`,
  "fan-out": `{ words: 4900, problems: [ 'cover.jpg is no audio' ] }
at most 3 at once: true
`,
  polling: `PUT /reports/july
GET /reports/july
GET /reports/july
GET /reports/july
{ file: 'july.csv', polls: 3 }
`,
  agent: `model: 1 messages
tool: find-order last order
model: 3 messages
tool: track order 7
tool: weather Lisbon
model: 6 messages
{
  turns: 3,
  answer: 'Your order 7 is in Lisbon. I cannot tell the weather.'
}
`,
  webhook: `refused: MissingHeader
user.signup { email: 'ada@example.com' }
`,
  debounce: `runs: 2
indexed: a very good ratchet
indexed: a pawl
another run: true
indexed: the best ratchet
`,
};

describe("the examples", () => {
  it.each(Object.entries(printed))("%s prints what it should", async (name, text) => {
    const program = require.resolve(`@pawl/examples/${name}`);
    const { code, stdout, stderr } = await runProgram(program, { env: { DATABASE_URL: url } });
    expect(stdout, stderr).toBe(text);
    expect(code).toBe(0);
  });

  it("each fit a page, and each is executed by a test", () => {
    const others = ["definitions", "demo-process", "demo-worker", "demo-world"];
    others.push("demo", "order", "outside", "quickstart");
    const names = readdirSync(source).map((file) => file.replace(/\.ts$/, ""));
    expect(names.toSorted()).toEqual([...others, ...Object.keys(printed)].toSorted());
    for (const name of Object.keys(printed)) {
      expect(readFileSync(join(source, `${name}.ts`), "utf8").split("\n").length, name).toBeLessThan(80);
    }
  });
});
