/**
 * Debounce: many edits of a product lead to one update of the search index, a little later. The
 * delay gathers the edits, and the unique key makes them one run. The run reads the product when it
 * executes, so it sees the last edit.
 */

import { connect, serve, workflow } from "pawl";

const index = workflow({
  name: "index-product",
  run: async ({ step }, input: { id: string }) => {
    const text = await step.run("read", () => products.get(input.id) ?? "");
    await step.run("write", () => void searchIndex.set(input.id, text));
    return text;
  },
});

const products = new Map<string, string>();
const searchIndex = new Map<string, string>();
const pawl = connect();

/** The shop calls this for every edit. */
async function edit(id: string, text: string): Promise<{ runId: string; created: boolean }> {
  products.set(id, text);
  return pawl.start(
    index,
    { id },
    {
      delay: "200ms", // "30s" in production
      uniqueKey: `index-product/${id}`,
      // The key is taken only until the run begins: an edit that comes while it is executed starts
      // another.
      uniqueScope: ["runnable"],
    },
  );
}

const edits = [
  await edit("ratchet", "a ratchet"),
  await edit("ratchet", "a good ratchet"),
  await edit("pawl", "a pawl"),
  await edit("ratchet", "a very good ratchet"),
];
console.log("runs:", new Set(edits.map(({ runId }) => runId)).size);

const worker = serve([index]);
for (const { runId, created } of edits) if (created) console.log("indexed:", await pawl.result(runId));

const later = await edit("ratchet", "the best ratchet");
console.log("another run:", later.created);
console.log("indexed:", await pawl.result(later.runId));

await worker.stop();
await pawl.close();
