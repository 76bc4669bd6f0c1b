import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { silent } from "../support/engine.js";
import { testServer } from "../support/server.js";
import { everyPage } from "./shop.js";
import { visitShop } from "./visit.js";

const secret = "admin-secret-0123456789abcdef";
const { visit, open, runs, pawl, database } = await visitShop();
const guarded = await testServer({ database, logger: silent, tokens: [`admin:admin:${secret}`] });
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

describe("with the keyboard alone", () => {
  it("an operator signs in, finds a run, signals it, and gets the focus back", async () => {
    const page = await open(guarded.url);
    const focused = (): Promise<string> =>
      page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText");
    const press = async (...keys: string[]): Promise<void> => {
      for (const key of keys) await page.keyboard.press(key);
    };
    /** Goes on with the tabulator until this has the focus. */
    const tabTo = async (name: RegExp): Promise<void> => {
      for (let steps = 0; steps < 60; steps += 1) {
        if (name.test(await focused())) return;
        await press("Tab");
      }
      throw new Error(`the focus does not reach ${name}`);
    };
    await page.getByLabel("Bearer token").waitFor();
    expect(await findFaults(page, "all")).toEqual([]);
    await page.keyboard.type(secret);
    await press("Enter");
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await press("Tab");
    expect(await focused()).toContain("Skip to the content");
    await press("Enter");
    expect(await focused()).toBe("Overview");
    await press("/");
    await page.keyboard.type(runs.order);
    await press("Enter");
    await page.getByRole("button", { name: "Send “paid”…" }).waitFor();
    await expect.poll(focused).toContain("order");
    await tabTo(/^Send “paid”/);
    await press("Enter");
    await page.getByRole("dialog").waitFor();
    await press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await focused()).toMatch(/^Send “paid”/);
    await press("Enter");
    await page.getByRole("dialog").waitFor();
    await press("Control+A");
    await page.keyboard.type('{"euros":7}');
    await tabTo(/^Send the signal/);
    await press("Enter");
    expect(await pawl.result(runs.order)).toMatchObject({ euros: 7 });
    await page
      .getByRole("region", { name: "Why" })
      .getByText(/^Completed/)
      .waitFor();
  });
});

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
