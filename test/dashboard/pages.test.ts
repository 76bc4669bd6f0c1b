import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { everyPage } from "./shop.js";
import { visitShop } from "./visit.js";

const { visit, runs, pawl } = await visitShop();

const heading = (page: Page, name: string | RegExp) =>
  page.getByRole("heading", { level: 1, name }).waitFor();
const row = (page: Page, text: string) => page.getByRole("row").filter({ hasText: text });

describe("the dashboard", () => {
  it("lists runs by filters that are part of the address", async () => {
    const page = await visit("/runs?status=failed&input.euros=250");
    await row(page, `#${runs.failed}`).waitFor();
    expect(await page.locator("tbody tr").count()).toBe(1);
    await page.getByRole("link", { name: "Remove the filter input.euros" }).click();
    await expect.poll(() => page.locator("tbody tr").count()).toBe(4);
    await page.getByLabel("Name", { exact: true }).fill("resize");
    await page.getByLabel("Name", { exact: true }).press("Enter");
    await expect.poll(() => page.locator("tbody tr").count()).toBe(1);
    expect(new URL(page.url()).search).toBe("?status=failed&name=resize");
    await page.getByLabel("Input has").fill("image=nothing.png");
    await page.getByLabel("Input has").press("Enter");
    await page.getByText("No run matches these filters").waitFor();
    await page.goBack();
    await row(page, "resize").waitFor();
  });

  it("shows older runs a page at a time", async () => {
    await pawl.startMany(
      "many",
      Array.from({ length: 60 }, (_, n) => ({ input: { n } })),
    );
    const page = await visit("/runs?name=many");
    await expect.poll(() => page.locator("tbody tr").count()).toBe(50);
    await page.getByRole("link", { name: "Older" }).click();
    await expect.poll(() => page.locator("tbody tr").count()).toBe(10);
    await page.getByRole("link", { name: "Newest" }).click();
    await expect.poll(() => page.locator("tbody tr").count()).toBe(50);
  });

  it("tells why a workflow waits, and shows its steps with their attempts", async () => {
    const page = await visit(`/runs/${runs.signup}`);
    await page.getByText(/waits for the signal verified/).waitFor();
    const steps = page.getByRole("region", { name: "Steps" });
    await steps.getByText("2 attempts").waitFor();
    await steps.getByRole("button", { name: /create-user/ }).click();
    expect(await steps.getByLabel("Output of create-user").textContent()).toBe("42");
    expect(await page.getByLabel("Input", { exact: true }).last().textContent()).toContain("ada@example.com");
  });

  it("shows the error of a failed run with its stack and its cause, and markup in it as text", async () => {
    const page = await visit(`/runs/${runs.failed}`);
    const error = page.getByRole("region", { name: "Error" });
    await error.getByText("amount too large", { exact: true }).waitFor();
    expect(await error.getByLabel("Stack").first().textContent()).toMatch(/shop\.[jt]s/);
    await page.getByRole("region", { name: "Why" }).getByText("<b>limit</b>").waitFor();
    expect(await page.locator("main b").count()).toBe(0);
  });

  it("links a run to its children and a child to its parent", async () => {
    const page = await visit(`/runs/${runs.album}`);
    await page.getByRole("table", { name: "Children" }).getByRole("link", { name: "resize" }).first().click();
    await page.getByRole("link", { name: `run ${runs.album}` }).click();
    await heading(page, /album/);
  });

  it("lists definitions, schedules, queues and limits", async () => {
    const page = await visit("/definitions");
    await row(page, "signup").waitFor();
    await page.getByRole("link", { name: "Schedules" }).click();
    await row(page, "nightly-charge").getByText("0 3 * * * (Europe/Berlin)").waitFor();
    await page.getByRole("link", { name: "Queues" }).click();
    await row(page, "exports").getByText("the warehouse is down").waitFor();
    await row(page, "webhooks").waitFor();
    await page.getByRole("link", { name: "Limits" }).click();
    await row(page, "card-network").getByText("5 per 1 s").waitFor();
  });

  it("updates itself: a run that ends is shown as ended", async () => {
    const { runId } = await pawl.start("order", { item: "spring" });
    const page = await visit(`/runs/${runId}`);
    await page.getByRole("button", { name: "Send “paid”…" }).waitFor();
    await pawl.signal(runId, "paid", { euros: 5 });
    await page
      .getByRole("region", { name: "Why" })
      .getByText(/^Completed/)
      .waitFor();
  });

  it("shows changes at once through a stream, which it closes while its tab is hidden", async () => {
    const page = await visit("/runs?name=lever");
    await page.getByTitle("Changes appear at once").waitFor();
    await page.getByText("No run matches these filters").waitFor();
    const { runId } = await pawl.start("lever", {});
    // Sooner than the page would ask by itself while a stream is open.
    await row(page, `#${runId}`).waitFor({ timeout: 20_000 });
    await page.evaluate(
      "Object.defineProperty(document, 'hidden', { value: true }); document.dispatchEvent(new Event('visibilitychange'))",
    );
    await page.getByTitle("The page updates itself every few seconds").waitFor();
  });

  it("polls where no stream can be opened", async () => {
    const page = await visit("/");
    await page.route("**/v1/events*", (route) => route.fulfill({ status: 404 }));
    await page.goto(new URL("/runs?name=gear", page.url()).href);
    await page.getByText("No run matches these filters").waitFor();
    const { runId } = await pawl.start("gear", {});
    await row(page, `#${runId}`).waitFor();
    await page.getByTitle("The page updates itself every few seconds").waitFor();
  });

  it("fits a phone: no page is wider than the screen", async () => {
    const page = await visit("/", { viewport: { width: 360, height: 700 } });
    for (const path of everyPage(runs)) {
      await page.goto(new URL(`/${path}`, page.url()).href);
      await page.locator("main h1").waitFor();
      await page.locator(".skeleton").first().waitFor({ state: "detached" });
      const width = await page.evaluate("document.documentElement.scrollWidth");
      expect([path, width]).toEqual([path, 360]);
    }
  });

  it("shows markup and control characters of names, keys and values as text", async () => {
    const evil = `<img src=x onerror="document.title='broken'"><script>1</script>\u001b[31m`;
    const { runId } = await pawl.start("evil", { [evil]: evil }, { idempotencyKey: evil, queue: "evil" });
    await pawl.runs.cancel(runId, { reason: evil });
    const page = await visit(`/runs/${runId}`);
    await page.getByRole("region", { name: "Why" }).getByText("<img src=x").waitFor();
    await page.goto(new URL(`/runs?name=evil&input.a=${encodeURIComponent(evil)}`, page.url()).href);
    await page.getByText("No run matches these filters").waitFor();
    expect(await page.locator("main img, main script").count()).toBe(0);
    expect(await page.title()).toBe("Runs · Pawl");
  });

  it("draws only the rows in view of a journal of 10,000 steps, however long it slept between them", async () => {
    const [step] = await pawl.runs.steps(runs.signup);
    const steps = Array.from({ length: 10_000 }, (_, n) => ({
      ...step,
      name: `step-${n}`,
      startedAt: new Date(Date.now() + n * 3_600_000),
      completedAt: new Date(Date.now() + n * 3_600_000 + 50),
    }));
    const page = await visit("/");
    await page.route(`**/v1/runs/${runs.signup}/steps`, (route) =>
      route.fulfill({ json: { steps, cursor: null } }),
    );
    await page.goto(new URL(`/runs/${runs.signup}`, page.url()).href);
    await page.getByText("10,000 steps in").waitFor();
    const nodes = () => page.evaluate<number>("document.querySelectorAll('*').length");
    expect(await nodes()).toBeLessThan(1_500);
    await page.evaluate("document.querySelector('.rows').scrollTop = 1e9");
    await page.getByRole("button", { name: "step-9999" }).click();
    await page.getByRole("heading", { name: "step-9999" }).waitFor();
    expect(await nodes()).toBeLessThan(1_500);
  });

  it("says so if there is no such run, and no such page", async () => {
    const page = await visit("/runs/123456789");
    await page.getByText("There is no run 123456789").waitFor();
    await page.goto(new URL("/nowhere", page.url()).href);
    await page.getByText("There is no such page").waitFor();
  });

  it("begins with an overview: counts, runs that no worker serves, and failures in groups", async () => {
    const page = await visit("/");
    await heading(page, "Overview");
    await page.getByText("1 run of invoice@1 waits, because no live worker serves it").waitFor();
    // Failures are counted some seconds later: by now they are.
    const group = page
      .getByRole("table", { name: "Failures in groups" })
      .getByRole("row", { name: /charge/ });
    expect(await group.getByRole("cell").first().textContent()).toBe("3");
    await group.getByRole("link", { name: "charge", exact: true }).click();
    await heading(page, "Runs");
    expect(new URL(page.url()).search).toBe("?status=failed&name=charge&error=NonRetryable");
    await expect.poll(() => page.getByRole("table").getByRole("row").count()).toBe(4);
  });
});
