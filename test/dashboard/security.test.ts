import { job, machine, NonRetryable, type, workflow } from "pawl";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { until } from "../support/until.js";
import { visitShop } from "./visit.js";

const secret = "admin-secret-0123456789abcdef";

/** Would run if a page took it as markup, as an attribute, as an address or as a script. */
const canary =
  `"><img src=x onerror="window.broken=1"><svg onload="window.broken=1"></svg><script>window.broken=1</script>` +
  `<iframe srcdoc="<script>parent.broken=1</script>"></iframe><a href="javascript:window.broken=1">c</a>` +
  "'-window.broken-'${window.broken=1}{{broken}}javascript:window.broken=1//\u001b]0;title\u0007\u001b[31m\u009b31m\u202e";

const thrown = (): Error => {
  const error = new NonRetryable(`message ${canary}`, { cause: new Error(`cause ${canary}`) });
  error.stack = `${canary}\n    at ${canary} (/app/${canary}.js:1:1)`;
  return Object.assign(error, { name: `name ${canary}` });
};

const evil = [
  job({
    name: "evil-job",
    maxAttempts: 1,
    run: () => {
      throw thrown();
    },
  }),
  job({ name: "evil-output", run: () => ({ [canary]: canary }) }),
  machine({
    name: "evil-machine",
    state: type<Record<string, string>>(),
    initial: "wait",
    steps: {
      wait: (ctx) => ctx.awaitSignal("go", "end", { ...ctx.state, more: canary }, { timeout: "1h" }),
      end: (ctx) => ctx.done(null),
    },
  }),
  workflow({
    name: "evil-flow",
    run: async ({ step }) => {
      await step.run("output", () => ({ [canary]: canary }));
      await step.run("throws", () => Promise.reject(thrown())).catch(() => {});
      await step.waitForEvent("go", { timeout: "1h" });
    },
  }),
];

const { visit, pawl, serve, url, takeComplaints } = await visitShop({
  empty: true,
  tokens: [`admin:admin:${secret}`],
});
await serve(evil);
const options = {
  tags: { evil: canary.slice(0, 250) },
  idempotencyKey: canary,
  correlationKey: canary.slice(0, 200),
  partitionKey: canary.slice(0, 200),
};
const started = await Promise.all(
  evil.map(async ({ name }) =>
    pawl.start(name, { [canary]: canary }, { ...options, idempotencyKey: name + canary }),
  ),
);
const [failed, output, waiting, flow] = started.map(({ runId }) => runId) as [string, string, string, string];
await pawl.result(failed).catch(() => {});
await pawl.result(output);
const { runId: cancelled } = await pawl.start("evil-unserved", canary);
await pawl.runs.cancel(cancelled, { reason: canary });
await pawl.runs.pause(waiting, { by: canary.slice(0, 200), reason: canary.slice(0, 200) });
await pawl.queues.pause("evil", { by: canary.slice(0, 200), reason: canary.slice(0, 200) });
await pawl.definitions.pause("evil-flow", { by: canary.slice(0, 200), reason: canary.slice(0, 200) });
await pawl.limits.set("evil", { concurrent: 1 });
await pawl.schedules.set("evil", { every: "1h", start: "evil-output", input: { [canary]: canary } });
await pawl.queues.send("evil", { [canary]: canary });
await until("the workflow waits", async () => (await pawl.runs.steps(flow)).length === 3);
await pawl.signal(flow, "unasked", { [canary]: canary });

const paths = [
  "/",
  "/runs",
  ...[failed, output, waiting, flow, cancelled].map((runId) => `/runs/${runId}`),
  "/definitions",
  "/schedules",
  "/schedules/evil",
  "/queues",
  "/limits",
  "/actions",
  "/waiting",
];
/** Pages that show parts of them, by what happens to run. */
const more = ["/keys", "/workers", "/doctor", "/definitions/evil-machine", "/definitions/evil-flow"];

async function signIn(page: Page): Promise<void> {
  await page.getByLabel("Bearer token").fill(secret);
  await page.getByRole("button", { name: "Open the dashboard" }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
}

async function loaded(page: Page): Promise<void> {
  await page.locator("main h1").waitFor();
  await page.locator(".skeleton").first().waitFor({ state: "detached" });
}

/** Elements that only a canary can have made. */
const foreign = "main img, main iframe, main script, main [onload], main [onerror], a[href^='javascript:' i]";

describe("a page shows values of users as text, and never runs them", () => {
  it("in every field, on every page", async () => {
    const page = await visit("/");
    await signIn(page);
    const seen: Record<string, boolean> = {};
    const isShown = async (): Promise<boolean> =>
      (await page.locator("main").innerText()).includes("window.broken=1");
    for (const path of [...paths, ...more]) {
      await page.goto(url + path);
      await loaded(page);
      // Everything that opens on the page.
      for (const button of await page.locator("button.line-name, button.more").all()) await button.click();
      seen[path] = await isShown();
      expect([path, await page.locator(foreign).count()]).toEqual([path, 0]);
      expect([path, await page.evaluate("window.broken")]).toEqual([path, undefined]);
      expect(await page.title()).toMatch(/ · Pawl$/);
    }
    // These have no such field.
    const without = ["/limits", "/schedules"];
    for (const path of more) delete seen[path];
    expect(seen).toEqual(Object.fromEntries(paths.map((path) => [path, !without.includes(path)])));
  });

  it("in the address: filters, ids and names of a link that somebody sends", async () => {
    const page = await visit("/");
    await signIn(page);
    const part = encodeURIComponent(canary);
    for (const path of [
      `/runs?name=${part}&tag.${part}=${part}&input.${part}=${part}&error=${part}&status=${part}&cursor=${part}`,
      `/runs?input.a=${part}`,
      `/runs/${part}`,
      `/schedules/${part}`,
      `/bulk/${part}`,
      `/${part}?${part}#${part}`,
      "//evil.example/runs",
    ]) {
      await page.goto(url + path);
      await loaded(page);
      expect([path, await page.locator(foreign).count()]).toEqual([path, 0]);
      expect([path, await page.evaluate("window.broken")]).toEqual([path, undefined]);
    }
  });

  it("and a command to copy has no escapes of a terminal in it", async () => {
    const page = await visit(`/runs?status=failed&input.a=${encodeURIComponent(canary)}`);
    await signIn(page);
    await page.getByRole("button", { name: "Act on all of these…" }).click();
    const command = await page.getByLabel("The same in a terminal").textContent();
    expect(command).toContain("window.broken=1");
    expect(command).not.toMatch(/[^\P{C}\n\t]/u);
  });
});

describe("the policy of a page", () => {
  it("stops markup that would get in all the same, and the test sees that", async () => {
    const page = await visit("/");
    await signIn(page);
    const insert = (html: string) =>
      page.evaluate(
        `{ const room = document.createElement("div"); room.innerHTML = ${JSON.stringify(html)}; document.body.append(room) }`,
      );
    await insert(`<img src="/nothing" onerror="window.broken=1">`);
    await insert(`<iframe srcdoc="<script>parent.broken=1</script>"></iframe>`);
    await insert(`<img src="https://evil.example/x">`);
    await insert(`<form action="https://evil.example/"><button id="send">x</button></form>`);
    await page.evaluate("document.querySelector('#send').click()");
    await page.evaluate("fetch('https://evil.example/').catch(() => {})");
    await page.evaluate("new Promise((done) => setTimeout(done, 0))");
    expect(await page.evaluate("window.broken")).toBeUndefined();
    expect(page.url()).toBe(`${url}/`);
    const complaints = takeComplaints();
    for (const word of ["script-src", "inline script", "img-src", "form-action", "connect-src"])
      expect(complaints.filter((text) => new RegExp(word).test(text))).not.toEqual([]);
  });

  it("lets no other page show it in a frame", async () => {
    const page = await visit("/");
    // Another origin: the page of a host with another name for this machine.
    await page.route("http://evil.localhost/", (route) =>
      route.fulfill({ contentType: "text/html", body: `<iframe src="${url}/" name="inner"></iframe>` }),
    );
    await page.goto("http://evil.localhost/");
    await expect.poll(() => page.frame("inner")?.url()).toBe("chrome-error://chromewebdata/");
    expect(takeComplaints()).toContain("called http://evil.localhost/");
  });
});

describe("a token", () => {
  it("is in the memory and the session storage of its tab, and in the header of calls, nowhere else", async () => {
    const page = await visit("/runs");
    const leaks: string[] = [];
    let sent = 0;
    page.on("request", async (request) => {
      const { authorization, ...headers } = await request.allHeaders();
      const body = request.postData() ?? "";
      if ([request.url(), body, ...Object.values(headers)].some((text) => text.includes(secret)))
        leaks.push(request.url());
      if (authorization !== undefined) sent += 1;
    });
    await signIn(page);
    for (const name of ["Runs", "Queues", "Limits", "Action log", "Overview"]) {
      await page.getByRole("link", { name, exact: true }).click();
      await loaded(page);
      expect(page.url()).not.toContain(secret);
    }
    const kept = await page.evaluate(
      "({ local: { ...localStorage }, session: { ...sessionStorage }, cookie: document.cookie, name, html: document.documentElement.outerHTML, history: history.state })",
    );
    expect(kept).toMatchObject({ local: {}, session: { "pawl.token": secret }, cookie: "" });
    const { session: _, ...others } = kept as Record<string, unknown>;
    expect(JSON.stringify(others)).not.toContain(secret);
    expect(leaks).toEqual([]);
    expect(sent).toBeGreaterThan(5);
    // Another tab does not have it.
    const other = await page.context().newPage();
    await other.goto(`${url}/runs`);
    await other.getByLabel("Bearer token").waitFor();
  });
});
