/** Looks whether the server is well, again and again, and tells how long that took. A process of its own: who makes requests is busy. */

const timesMs: number[] = [];

process.once("message", (url: string) => void probe(url));
process.once("SIGTERM", () => process.send?.(timesMs, () => process.exit()));
process.on("disconnect", () => process.exit());

async function probe(url: string): Promise<void> {
  for (;;) {
    const beganMs = performance.now();
    await (await fetch(`${url}/healthz`)).text();
    timesMs.push(performance.now() - beganMs);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
