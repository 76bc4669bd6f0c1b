import { job, NonRetryable } from "pawl";
import { describe, expect, it } from "vitest";
import { until } from "../support/until.js";
import { visitShop } from "./visit.js";

const { visit, runs, pawl, serve } = await visitShop();

describe("after failures an operator", () => {
  it("finds a failed run by its tag and input, reads its error, and runs it again with another input", async () => {
    const page = await visit("/runs?status=failed");
    await page.getByLabel("Tag").fill("customer=42");
    await page.getByLabel("Tag").press("Enter");
    await page.getByRole("link", { name: "Remove the filter tag.customer" }).waitFor();
    await page.getByLabel("Input has").fill("order=A-22");
    await page.getByLabel("Input has").press("Enter");
    await expect.poll(() => page.locator("tbody tr").count()).toBe(1);
    await page.locator("tbody").getByRole("link", { name: "charge" }).click();
    await page.getByRole("region", { name: "Error" }).getByLabel("Stack").first().getByText("shop").waitFor();
    await page.getByRole("button", { name: "Rerun…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Input").fill('{"order":"A-22","euros":25}');
    await dialog.getByRole("button", { name: "Start the rerun" }).click();
    await page
      .getByRole("region", { name: "Why" })
      .getByText(/^Completed/)
      .waitFor();
    await page.getByRole("link", { name: `run ${runs.failed}` }).waitFor();
    expect(await pawl.runs.count({ name: "charge", status: "completed", input: { order: "A-22" } })).toBe(1);
  });

  it("acts on all runs that match only after typing their number, and sees the progress", async () => {
    const page = await visit("/runs?status=failed&name=charge&input.euros=900");
    await page.getByRole("button", { name: "Act on all of these…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("2 runs match now").waitFor();
    expect(await dialog.getByLabel("The same in a terminal").textContent()).toBe(
      `npx pawl runs bulk rerun --status failed --name charge --input '{"euros":900}'`,
    );
    await dialog.getByLabel("Type the number").fill("3");
    await dialog.getByRole("button", { name: "Rerun 2 runs" }).click();
    await dialog.getByRole("alert").waitFor();
    await dialog.getByLabel("Type the number").fill("2");
    await dialog.getByRole("button", { name: "Rerun 2 runs" }).click();
    await page.getByRole("heading", { level: 1, name: /Bulk operation/ }).waitFor();
    await page.getByText("2 done, 0 skipped, 0 failed, of 2.").waitFor();
    await page.getByRole("link", { name: "Action log" }).click();
    await page.getByRole("cell", { name: "runs.bulk" }).waitFor();
  });

  it("runs a thousand failed runs again, when their cause is mended", async () => {
    let isBroken = true;
    const print = job({
      name: "print",
      maxAttempts: 1,
      run: () => {
        if (isBroken) throw new NonRetryable("out of paper");
      },
    });
    await serve([print]);
    await pawl.startMany(
      print,
      Array.from({ length: 1_000 }, (_, n) => ({ input: { n } })),
    );
    const count = (status: "failed" | "completed") => pawl.runs.count({ name: "print", status });
    await until("all have failed", async () => (await count("failed")) === 1_000);
    isBroken = false;
    const page = await visit("/runs?status=failed&name=print");
    await page.getByRole("button", { name: "Act on all of these…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("1,000 runs match now").waitFor();
    await dialog.getByLabel("Type the number").fill("1,000");
    await dialog.getByRole("button", { name: "Rerun 1,000 runs" }).click();
    await page.getByText("1,000 done, 0 skipped, 0 failed, of 1,000.").waitFor();
    await until("all have completed", async () => (await count("completed")) === 1_000);
  });
});
