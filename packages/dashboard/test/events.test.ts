import { describe, expect, it, vi } from "vitest";

// The module reads the address of its page and the storage of its tab.
vi.stubGlobal("document", { baseURI: "http://localhost/" });
vi.stubGlobal("sessionStorage", { getItem: () => null });
const { readEvents } = await import("../src/api/events.js");

async function eventsOf(...pieces: string[]): Promise<(string | null)[][]> {
  const encoder = new TextEncoder();
  const stream = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(encoder.encode(piece));
      controller.close();
    },
  });
  const found: (string | null)[][] = [];
  await readEvents(stream, (event, id) => found.push([event, id]));
  return found;
}

describe("a stream of server-sent events", () => {
  it("is read event by event, wherever the network cut it", async () => {
    const text = `: hello\n\nevent: changes\nid: 7\ndata: {"events":[${'"x",'.repeat(50)}1]}\n\nevent: end\ndata: {}\n\n`;
    const whole = await eventsOf(text);
    expect(whole).toEqual([
      ["changes", "7"],
      ["end", "7"],
    ]);
    expect(await eventsOf(...text)).toEqual(whole);
  });

  it("has no event in a heartbeat", async () => {
    expect(await eventsOf(": \n\n", ": \n\n")).toEqual([]);
  });
});
