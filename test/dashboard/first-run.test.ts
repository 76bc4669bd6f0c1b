import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { job } from "pawl";
import { describe, expect, it } from "vitest";
import { visitShop } from "./visit.js";

const { visit, serve } = await visitShop({ empty: true });

describe("the dashboard of an empty database", () => {
  it("teaches how to start the first run, and shows it when it has completed", async () => {
    const page = await visit("/");
    await page.getByRole("heading", { name: "No run yet" }).waitFor();
    expect(await page.getByLabel("Serve it").textContent()).toBe("npx pawl dev --watch definitions.ts");
    await page.getByRole("button", { name: "Start a run…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Definition").fill("greet");
    await dialog.getByLabel("Input").fill('{"name":"Ada"}');
    await dialog.getByRole("button", { name: "Start" }).click();
    const why = page.getByRole("region", { name: "Why" });
    await why.getByText("Start a worker whose").waitFor();
    await serve([job({ name: "greet", run: (_ctx, input: { name: string }) => `Hello, ${input.name}` })]);
    await why.getByText(/^Completed/).waitFor();
    await page.getByRole("link", { name: "Overview" }).click();
    await page.getByRole("table", { name: "Latest runs" }).getByText("greet").waitFor();
  });

  it.each([
    ["/waiting", "No run waits for a signal"],
    ["/schedules", "No schedule"],
    ["/keys", "No key is held"],
    ["/limits", "No limit"],
    ["/definitions/nothing", "No worker has served it"],
  ])("says on %s what would stand there", async (path, text) => {
    const page = await visit(path);
    await page.getByRole("heading", { name: text }).waitFor();
  });
});

describe("the files of the dashboard", () => {
  it("have at most 120 KB of JavaScript in all, compressed", () => {
    const manifest = createRequire(import.meta.url).resolve("@pawl/dashboard/package.json");
    const assets = join(dirname(manifest), "dist/app/assets");
    const scripts = readdirSync(assets).filter((name) => name.endsWith(".js"));
    const sizes = scripts.map((name) => gzipSync(readFileSync(join(assets, name))).length);
    expect(scripts.length).toBeGreaterThan(0);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(120_000);
  });
});
