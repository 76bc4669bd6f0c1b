import { describe, expect, it } from "vitest";
import { visitShop } from "./visit.js";

const reader = "reader-secret-0123456789abcdef";
const writer = "writer-secret-0123456789abcdef";
const { visit, url, pawl } = await visitShop({
  empty: true,
  tokens: [`reader:read:${reader}`, `writer:write:${writer}`],
});

describe("the dashboard of a server with tokens", () => {
  it("asks for a token, refuses a wrong one, and keeps a right one in its tab, never in the address", async () => {
    const page = await visit("/runs");
    const field = page.getByLabel("Bearer token");
    await field.fill("wrong-secret-0123456789abcdef");
    await page.getByRole("button", { name: "Open the dashboard" }).click();
    await page.getByRole("alert").waitFor();
    await field.fill(reader);
    await page.getByRole("button", { name: "Open the dashboard" }).click();
    await page.getByRole("heading", { level: 1, name: "Runs" }).waitFor();
    await page.reload();
    await page.getByText("No run yet").waitFor();
    expect(page.url()).toBe(`${url}/runs`);
    expect(await page.evaluate("[Object.values(localStorage), document.cookie]")).toEqual([[], ""]);
    await page.getByRole("button", { name: "Sign out" }).click();
    await field.waitFor();
    expect(await page.evaluate("sessionStorage.length")).toBe(0);
  });

  it("says why the server refuses an act, if the token has lost its rights meanwhile", async () => {
    const { runId } = await pawl.start("nobody-serves", {});
    const page = await visit(`/runs/${runId}`);
    await page.getByLabel("Bearer token").fill(writer);
    await page.getByRole("button", { name: "Open the dashboard" }).click();
    await page.getByRole("button", { name: "Cancel…" }).click();
    await page.route("**/v1/**", (route) =>
      route.continue({ headers: { ...route.request().headers(), authorization: `Bearer ${reader}` } }),
    );
    await page.getByRole("button", { name: "Cancel the run" }).click();
    await page.getByText('the token "reader" lacks the scope write').waitFor();
    expect((await pawl.runs.get(runId)).status).toBe("running");
  });

  it("shows nobody what was loaded with another token", async () => {
    const page = await visit("/runs");
    const signIn = async (secret: string): Promise<void> => {
      await page.getByLabel("Bearer token").fill(secret);
      await page.getByRole("button", { name: "Open the dashboard" }).click();
    };
    await signIn(writer);
    await page.getByRole("table").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    // The answer for the next token never comes.
    await page.route("**/v1/runs?*", () => {});
    await signIn(reader);
    await page.getByRole("status", { name: "Loading" }).waitFor();
    expect(await page.getByRole("table").count()).toBe(0);
  });

  it("teaches how to start the first run", async () => {
    const page = await visit("/runs?name=none-of-this");
    await page.getByLabel("Bearer token").fill(writer);
    await page.getByRole("button", { name: "Open the dashboard" }).click();
    await page.getByText("No run matches these filters").waitFor();
    await page.getByRole("link", { name: "Definitions" }).click();
    await page.getByRole("heading", { level: 1, name: "Definitions" }).waitFor();
  });
});
