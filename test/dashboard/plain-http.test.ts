/** Over http at another name than localhost, browsers offer neither a clipboard nor `crypto.randomUUID`. */

import { describe, expect, it } from "vitest";
import { visitShop } from "./visit.js";

const secret = "admin-secret-0123456789abcdef";
const { url, open, takeComplaints } = await visitShop({ empty: true, tokens: [`admin:admin:${secret}`] });
const away = url.replace("127.0.0.1", "pawl.test");

describe("over http at another host name", () => {
  it("a run starts, and Copy selects the text", async () => {
    const page = await open(`${away}/`);
    expect(await page.evaluate("isSecureContext")).toBe(false);
    await page.getByLabel("Bearer token").fill(secret);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Start a run…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Definition").fill("ship");
    await dialog.getByRole("button", { name: "Copy to the clipboard" }).click();
    await dialog.getByText("Selected").waitFor();
    expect(await page.evaluate("getSelection().toString()")).toBe("npx pawl runs start ship '{}'");
    await dialog.getByRole("button", { name: "Start", exact: true }).click();
    await page.waitForURL(/\/runs\/\d+$/);
    // The browser says that it ignores a header there.
    expect(takeComplaints().filter((one) => !one.includes("Cross-Origin-Opener-Policy"))).toEqual([]);
  });
});
