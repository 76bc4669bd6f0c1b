/**
 * Debounce: many edits of a product lead to one update of the search index, a little later. While
 * the run of a product has not begun, another edit replaces its input and moves its time, but not
 * beyond `maxDelay` after the first edit.
 */

import { connect, serve, workflow } from "pawl";

const index = workflow({
  name: "index-product",
  run: async ({ step }, { id, text }: { id: string; text: string }) => {
    await step.run("write", () => void searchIndex.set(id, text));
    return text;
  },
});

const searchIndex = new Map<string, string>();
const pawl = connect();

/** The shop calls this for every edit. */
async function edit(id: string, text: string): Promise<{ runId: string; created: boolean }> {
  // "30s" and "5m" in production. An edit that comes while the run is executed starts another.
  return pawl.start(index, { id, text }, { debounce: { key: id, delay: "200ms", maxDelay: "2s" } });
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
