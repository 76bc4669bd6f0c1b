import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { testServer } from "../support/server.js";
import { silent } from "../support/engine.js";
import { everyPage } from "./shop.js";
import { visitShop } from "./visit.js";

const secrets = {
  reader: "reader-secret-0123456789abcdef",
  writer: "writer-secret-0123456789abcdef",
  admin: "admin-secret-0123456789abcdef",
  charges: "charges-secret-0123456789abcdef",
};
const tokens = [
  `reader:read:${secrets.reader}`,
  `writer:write:${secrets.writer}`,
  `admin:admin:${secrets.admin}`,
  `charges:read:names=charge+mail:${secrets.charges}`,
];
const { visit, runs, pawl, database } = await visitShop({ tokens });
const others = await testServer({
  database,
  tokens,
  logger: silent,
  dashboard: { readOnly: true, payloads: false },
});

async function signIn(page: Page, who: keyof typeof secrets): Promise<void> {
  await page.getByLabel("Bearer token").fill(secrets[who]);
  await page.getByRole("button", { name: "Open the dashboard" }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
}

/** Buttons that change nothing on the server. */
const harmless =
  /^(Live|Paused|Change the theme|Sign out|Copy|CLI|curl|TypeScript|Show (all|less|more)|Try again|Check again|Steps of run)|to the clipboard$/;

/** The buttons of a page that change something, by their names. */
async function acts(page: Page, path: string): Promise<string[]> {
  await page.goto(new URL(`/${path}`, page.url()).href);
  await page.locator("main h1").waitFor();
  await page.locator(".skeleton").first().waitFor({ state: "detached" });
  const names: string[] = await page.evaluate(
    `[...document.querySelectorAll("button:not(.line-name):not(.fold)")].map((b) => b.getAttribute("aria-label") ?? b.innerText.trim())`,
  );
  return names.filter((name) => !harmless.test(name));
}

describe("the dashboard shows a button only to a token that may use it", () => {
  it("read: none on any page, and the API refuses what a button would do", async () => {
    const page = await visit("/");
    await signIn(page, "reader");
    for (const path of everyPage(runs)) expect([path, await acts(page, path)]).toEqual([path, []]);
    const cancel = (token: string) =>
      fetch(new URL(`/v1/runs/${runs.order}`, page.url()), {
        method: "DELETE",
        headers: { authorization: `Bearer ${token}` },
      });
    expect((await cancel(secrets.reader)).status).toBe(403);
    expect((await pawl.runs.get(runs.order)).status).toBe("running");
  });

  it("write: those of runs and schedules; admin: all", async () => {
    const page = await visit("/");
    await signIn(page, "writer");
    expect(await acts(page, `runs/${runs.order}`)).toEqual(
      expect.arrayContaining(["Send “paid”…", `Pause ${runs.order}`, "Cancel…"]),
    );
    expect(await acts(page, "schedules/nightly-charge")).toContain("Backfill…");
    for (const path of ["queues", "limits"]) expect([path, await acts(page, path)]).toEqual([path, []]);
    expect(await acts(page, "runs")).toEqual(["Start a run…"]);
    await page.getByRole("button", { name: "Sign out" }).click();
    await signIn(page, "admin");
    expect(await acts(page, "queues")).toContain("Resume exports");
    expect(await acts(page, "limits")).toEqual(expect.arrayContaining(["Add a limit…", "Change mail"]));
    expect(await acts(page, "runs?status=failed")).toContain("Act on all of these…");
  });

  it("names the reader's token, and shows no action log to it", async () => {
    const page = await visit("/");
    await signIn(page, "reader");
    await page.getByText("reader", { exact: true }).waitFor();
    expect(await page.getByRole("link", { name: "Action log" }).count()).toBe(0);
  });
});

describe("a token that is limited to some names", () => {
  it("sees what it may see on every page, and no refusal", async () => {
    const page = await visit("/");
    await signIn(page, "charges");
    const refused: string[] = [];
    page.on("response", (response) => {
      if (response.status() === 403) refused.push(response.url());
    });
    const pages = ["", "runs", `runs/${runs.failed}`, "definitions", "definitions/charge", "schedules"];
    for (const path of [...pages, "queues", "limits", "waiting", "keys", "workers"]) {
      await acts(page, path);
      expect([path, await page.getByRole("alert").count()]).toEqual([path, 0]);
      const text = await page.locator("main").innerText();
      expect([path, /\b(signup|album|resize|invoice|exports|webhooks|card-network)\b/.exec(text)]).toEqual([
        path,
        null,
      ]);
    }
    // The children of a run can have any name.
    expect(refused.filter((url) => !url.includes("parentId="))).toEqual([]);
    await acts(page, "");
    await page
      .getByRole("table", { name: "Latest runs" })
      .getByRole("link", { name: "charge" })
      .first()
      .click();
    await page.getByRole("heading", { level: 1, name: /charge/ }).waitFor();
    await acts(page, "limits");
    await page.getByRole("cell", { name: "mail", exact: true }).waitFor();
  });
});

describe("a dashboard that is read-only and hides payloads", () => {
  it("has no button for any token, while the API allows what it always allows", async () => {
    const page = await visit("/");
    await page.goto(others.url);
    await signIn(page, "admin");
    for (const path of everyPage(runs)) expect([path, await acts(page, path)]).toEqual([path, []]);
    const bearer = { authorization: `Bearer ${secrets.admin}` };
    expect((await others.call("PUT", "/v1/limits/mail", { allowed: 9, period: "1m" }, bearer)).status).toBe(
      200,
    );
  });

  it("gets no input, state, output or payload from the server, and programs still do", async () => {
    const page = await visit("/");
    const answers: string[] = [];
    page.on("response", async (response) => {
      if (/\/v1\//.test(response.url())) answers.push(await response.text().catch(() => ""));
    });
    await page.goto(others.url);
    await signIn(page, "admin");
    const ended = `runs/${runs.ended}`;
    for (const path of [...everyPage(runs), ended, `runs/${runs.order}`]) await acts(page, path);
    const all = answers.join("\n");
    expect(all).toContain('"input":"[hidden]"');
    expect(all).toContain('"output":"[hidden]"');
    expect(all).toContain('"state":"[hidden]"');
    for (const value of [
      "ada@example.com",
      "grace@example.com",
      '"m-1"',
      "R-A-17",
      "ratchet",
      "notes.txt@",
      '"order":"A-',
    ])
      expect([value, all.includes(value)]).toEqual([value, false]);
    await acts(page, ended);
    expect(await page.getByLabel("Input", { exact: true }).last().textContent()).toContain("[hidden]");
    const bearer = { authorization: `Bearer ${secrets.admin}` };
    const { body } = await others.call("GET", `/v1/runs/${runs.ended}`, undefined, bearer);
    expect(body).toMatchObject({ input: { email: "grace@example.com" } });
    const typed = await others.call("GET", `/v1/runs/${runs.ended}`, undefined, {
      ...bearer,
      "sec-fetch-site": "none",
    });
    expect(typed.body).toMatchObject({ input: "[hidden]", output: "[hidden]" });
  });
});
