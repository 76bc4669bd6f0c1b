/** `verifyDelivery`: a receiver believes what a server has signed, and nothing else. */

import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { connect, InvalidDelivery, InvalidOption, verifyDelivery } from "pawl";
import { verifyDelivery as inBrowsers } from "pawl/client";
import { afterAll, describe, expect, it } from "vitest";
import { signDelivery } from "pawl/engine";
import { testDatabase } from "../../support/database.js";
import { testServer } from "../../support/server.js";
import { until } from "../../support/until.js";

const { url } = await testDatabase();
await testServer({ database: url, allowPrivateDeliveries: ["127.0.0.1"] });
const secrets = {
  base64: `whsec_${Buffer.from("0123456789abcdef01234567").toString("base64")}`,
  text: "a-text-of-24-characters-",
};
const now = () => Math.floor(Date.now() / 1_000);

/** A delivery as a server sends it. */
function delivery(given: { secret?: string; at?: number; topic?: string; body?: string } = {}) {
  const {
    secret = secrets.base64,
    at = now(),
    topic = "user.signup",
    body = '{"n":1,"text":"häkchen ✓"}',
  } = given;
  return { headers: signDelivery({ id: "64", timestamp: String(at), topic, body }, secret), body };
}

async function reasonOf(verifying: Promise<unknown>): Promise<string> {
  const error = await verifying.then(
    () => undefined,
    (refused: unknown) => refused,
  );
  expect(error).toBeInstanceOf(InvalidDelivery);
  expect(error).toMatchObject({ code: "InvalidDelivery" });
  return (error as InvalidDelivery).reason;
}

describe("a delivery that is genuine is answered", () => {
  it.each(Object.entries(secrets))("with a secret of the form %s", async (_, secret) => {
    const { headers, body } = delivery({ secret });
    const verified = {
      id: "64",
      topic: "user.signup",
      timestamp: new Date(Number(headers["webhook-timestamp"]) * 1_000),
      body: { n: 1, text: "häkchen ✓" },
    };
    for (const verify of [verifyDelivery, inBrowsers]) {
      expect(await verify({ headers, body }, secret)).toEqual(verified);
      expect(await verify({ headers, body: Buffer.from(body) }, secret)).toEqual(verified);
      expect(await verify({ headers: new Headers(headers), body }, secret)).toEqual(verified);
      const request = new Request("http://localhost/hook", { method: "POST", headers, body });
      expect(await verify(request, secret)).toEqual(verified);
    }
  });

  it("whatever the case of the names of headers, and with lists of values as Node has them", async () => {
    const { headers, body } = delivery();
    const upper = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toUpperCase(), [value]]),
    );
    expect(await verifyDelivery({ headers: upper, body }, secrets.base64)).toMatchObject({ id: "64" });
  });

  it("with one of several signatures, and one of several secrets", async () => {
    const { headers, body } = delivery();
    const other = delivery({ secret: secrets.text }).headers["pawl-signature"]!;
    const several = { ...headers, "pawl-signature": `v2,abc ${other} ${headers["pawl-signature"]!}` };
    expect(await verifyDelivery({ headers: several, body }, secrets.base64)).toMatchObject({ id: "64" });
    // As both `Headers` and Node join a header that came twice.
    const twice = new Headers({ ...headers, "pawl-signature": headers["pawl-signature"]! });
    twice.append("pawl-signature", other);
    expect(await verifyDelivery({ headers: twice, body }, secrets.base64)).toMatchObject({ id: "64" });
    expect(await verifyDelivery({ headers, body }, [secrets.text, secrets.base64])).toMatchObject({
      id: "64",
    });
  });

  it("up to five minutes after it was sent, or before, or as long as is asked for", async () => {
    for (const at of [now() - 290, now() + 290]) await verifyDelivery(delivery({ at }), secrets.base64);
    await verifyDelivery(delivery({ at: now() - 3_000 }), secrets.base64, { tolerance: "1h" });
  });
});

describe("refused is", () => {
  it("another secret", async () => {
    expect(await reasonOf(verifyDelivery(delivery(), secrets.text))).toBe("WrongSignature");
  });

  it.each(["webhook-id", "webhook-timestamp", "pawl-topic", "pawl-signature"])(
    "a delivery whose header %s is missing, or another",
    async (name) => {
      const { headers, body } = delivery();
      const { [name]: _, ...without } = headers;
      expect(await reasonOf(verifyDelivery({ headers: without, body }, secrets.base64))).toBe(
        "MissingHeader",
      );
      const others: Record<string, string> = {
        "webhook-id": "65",
        "webhook-timestamp": String(now() - 1),
        "pawl-topic": "user.deleted",
        // That without the topic is no substitute.
        "pawl-signature": headers["webhook-signature"]!,
      };
      const changed = { ...headers, [name]: others[name]! };
      expect(await reasonOf(verifyDelivery({ headers: changed, body }, secrets.base64))).toBe(
        "WrongSignature",
      );
    },
  );

  it("another body, however small the difference", async () => {
    const { headers, body } = delivery();
    for (const other of [`${body} `, body.replace("1", "2"), ""]) {
      expect(await reasonOf(verifyDelivery({ headers, body: other }, secrets.base64))).toBe("WrongSignature");
    }
  });

  it("a delivery of ten years or six minutes ago, of six minutes ahead, or of no time", async () => {
    for (const at of [now() - 10 * 31_557_600, now() - 360, now() + 360]) {
      expect(await reasonOf(verifyDelivery(delivery({ at }), secrets.base64))).toBe("WrongTime");
    }
    const { headers, body } = delivery();
    for (const timestamp of ["soon", "1e9", `${now()}.5`, "-1"]) {
      const changed = { ...headers, "webhook-timestamp": timestamp };
      expect(await reasonOf(verifyDelivery({ headers: changed, body }, secrets.base64))).toBe("WrongTime");
    }
  });

  it("a signature that could be read in another way", async () => {
    const ahead = now() + 1;
    const { headers } = delivery({ body: `${ahead}.5` });
    const shifted = {
      ...headers,
      "webhook-id": `64.${headers["webhook-timestamp"]!}`,
      "webhook-timestamp": String(ahead),
    };
    expect(await reasonOf(verifyDelivery({ headers: shifted, body: "5" }, secrets.base64))).toBe(
      "MissingHeader",
    );
  });

  it("a body that is signed and no JSON", async () => {
    expect(await reasonOf(verifyDelivery(delivery({ body: "{" }), secrets.base64))).toBe("InvalidBody");
  });

  it("a call that could not check anything", async () => {
    const { headers, body } = delivery();
    const used = new Request("http://localhost/hook", { method: "POST", headers, body });
    await used.text();
    for (const calling of [
      verifyDelivery({ headers, body: JSON.parse(body) as string }, secrets.base64),
      verifyDelivery(used, secrets.base64),
      verifyDelivery({ headers, body }, "short"),
      verifyDelivery({ headers, body }, `whsec_${"A".repeat(28)}`),
      verifyDelivery({ headers, body }, []),
      verifyDelivery(undefined as never, secrets.base64),
      verifyDelivery({ headers, body }, secrets.base64, { window: "1h" } as never),
    ]) {
      await expect(calling).rejects.toThrow(InvalidOption);
    }
  });
});

it("what a server delivers is genuine, with both forms of secrets", async () => {
  const arrived: { path: string; headers: IncomingHttpHeaders; body: string }[] = [];
  const receiver = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      arrived.push({ path: request.url!, headers: request.headers, body });
      response.end();
    });
  });
  receiver.listen(0, "127.0.0.1");
  await once(receiver, "listening");
  afterAll(() => receiver.close());
  const at = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`;
  const pawl = connect(url);
  afterAll(() => pawl.close());
  for (const [form, secret] of Object.entries(secrets)) {
    await pawl.subscriptions.create("user.*", { type: "http", url: `${at}/${form}`, secret });
  }
  await pawl.topics.publish("user.signup", { email: "ada@example.com" });
  await until("both have arrived", () => arrived.length === 2);
  for (const { path, headers, body } of arrived) {
    const secret = secrets[path.slice(1) as keyof typeof secrets];
    const { topic, body: read } = await verifyDelivery({ headers, body }, secret);
    expect({ topic, read }).toEqual({ topic: "user.signup", read: { email: "ada@example.com" } });
    const renamed = { ...headers, "pawl-topic": "user.deleted" };
    expect(await reasonOf(verifyDelivery({ headers: renamed, body }, secret))).toBe("WrongSignature");
  }
});
