import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { everyPage } from "./shop.js";
import { visitShop } from "./visit.js";

const { visit, runs } = await visitShop();
const require = createRequire(import.meta.url);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

interface Fault {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string }[];
}

/** What axe finds to be a serious or critical fault. */
async function findFaults(page: Page, rules: "all" | "colors"): Promise<string[]> {
  await page.evaluate(axe);
  const { violations } = await page.evaluate<{ violations: Fault[] }>(
    rules === "all" ? "axe.run()" : 'axe.run({ runOnly: ["color-contrast"] })',
  );
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(" ")}`);
}

describe("people with disabilities can use the dashboard: no page has a serious fault", () => {
  it.each([
    ["light", "all"],
    ["dark", "colors"],
  ] as const)("in the %s theme (%s)", async (colorScheme, rules) => {
    const page = await visit("/", { colorScheme });
    for (const path of everyPage(runs)) {
      await page.goto(new URL(`/${path}`, page.url()).href);
      await page.locator("main h1").waitFor();
      await page.locator(".skeleton").first().waitFor({ state: "detached" });
      expect([path, await findFaults(page, rules)]).toEqual([path, []]);
    }
    await page.goto(new URL(`/runs/${runs.signup}`, page.url()).href);
    await page.getByRole("button", { name: "Cancel…" }).click();
    expect(["dialog", await findFaults(page, rules)]).toEqual(["dialog", []]);
  });
});
