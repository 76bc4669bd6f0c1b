/**
 * `verifyDelivery`: what a receiver of deliveries calls before it believes one. Checks the time, then
 * the signature over topic, id, time and body, in constant time, and answers the delivery. Needs nothing
 * but WebCrypto, so that it works in every runtime.
 */

import { fromBase64, toBytes } from "./bytes.js";
import {
  checkDeliverySecret,
  deliveryHeaders,
  deliveryKey,
  signedTopicPrefix,
} from "./delivery-signature.js";
import { type Duration, toMilliseconds } from "./duration.js";
import { InvalidDelivery, InvalidOption } from "./errors.js";
import type { Json } from "./json-types.js";
import { checkTopic } from "./names.js";
import { checkOptions, isObject } from "./options.js";
import { show } from "./show.js";

/** The headers of a request: those of `fetch`, or an object such as Node's `request.headers`. */
export type DeliveryHeaders =
  | { get(name: string): string | null }
  | { readonly [name: string]: string | readonly string[] | undefined };

/** A request: that of `fetch`, or its headers and its body as it was sent. */
export type DeliveryRequest =
  | {
      readonly headers: { get(name: string): string | null };
      readonly bodyUsed: boolean;
      arrayBuffer(): Promise<ArrayBuffer>;
    }
  | { readonly headers: DeliveryHeaders; readonly body: string | Uint8Array | ArrayBuffer };

export interface VerifyOptions {
  /** How far the time of the delivery may be from now, in the past and in the future. Default "5m". */
  readonly tolerance?: Duration | undefined;
}

/** A delivery whose signature is right. */
export interface VerifiedDelivery<Body = Json> {
  /** The same at every try: what to deduplicate by. */
  readonly id: string;
  readonly topic: string;
  /** When this try was made. */
  readonly timestamp: Date;
  readonly body: Body;
}

/** More are not looked at: each costs an HMAC over the body. */
const maxSignatures = 10;

/**
 * Answers the delivery that a request carries, or throws `InvalidDelivery`. With several secrets, one of
 * them must fit: while a secret is being replaced, give the old one and the new one.
 */
export async function verifyDelivery<Body = Json>(
  request: DeliveryRequest,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<VerifiedDelivery<Body>> {
  const { tolerance = "5m" } = checkOptions(options, ["tolerance"], "the options of verifyDelivery");
  const toleranceMs = toMilliseconds(tolerance, "tolerance");
  const secrets = [secret].flat().map((one) => checkDeliverySecret(one, "the secret of verifyDelivery"));
  if (secrets.length === 0) throw new InvalidOption("verifyDelivery takes at least one secret");
  checkRequest(request);
  const id = header(request.headers, deliveryHeaders.id);
  const timestamp = header(request.headers, deliveryHeaders.timestamp);
  const topic = header(request.headers, deliveryHeaders.topic);
  const signatures = header(request.headers, deliveryHeaders.topicSignature);
  const time = checkTime(timestamp, toleranceMs);
  checkForms(id, topic);
  const body = await bodyOf(request);
  const content = join(toBytes(signedTopicPrefix({ id, timestamp, topic })), body);
  if (!(await isSigned(content, signatures, secrets))) {
    throw new InvalidDelivery(
      "WrongSignature",
      `no signature in the header ${deliveryHeaders.topicSignature} is that of this secret over this topic, id, timestamp and ` +
        "body; check the secret, and give the body exactly as it was sent",
    );
  }
  return { id, topic, timestamp: time, body: parseBody(body) as Body };
}

function checkRequest(request: unknown): void {
  if (isObject(request) && isObject(request["headers"])) return;
  throw new InvalidOption(
    `verifyDelivery takes a Request, or { headers, body } with the body as it was sent, not ${show(request)}`,
  );
}

/** The one value of a header, whatever the case of its name. */
function header(headers: DeliveryHeaders, name: string): string {
  const found = isFetchHeaders(headers)
    ? headers.get(name)
    : Object.entries(headers)
        .filter(([key]) => key.toLowerCase() === name)
        .flatMap(([, value]) => value ?? [])
        .join(" ");
  const text = found?.trim() ?? "";
  if (text !== "") return text;
  throw new InvalidDelivery(
    "MissingHeader",
    `the header ${name} is missing` +
      (name === deliveryHeaders.topicSignature
        ? ": the subscription has no secret, or this is no delivery"
        : ""),
  );
}

function isFetchHeaders(headers: DeliveryHeaders): headers is { get(name: string): string | null } {
  return typeof headers["get" as never] === "function";
}

function checkTime(timestamp: string, toleranceMs: number): Date {
  const time = new Date(/^\d{1,12}$/.test(timestamp) ? Number(timestamp) * 1_000 : Number.NaN);
  const awayMs = Math.abs(Date.now() - time.getTime());
  if (awayMs <= toleranceMs) return time;
  throw new InvalidDelivery(
    "WrongTime",
    `the header ${deliveryHeaders.timestamp} is ${show(timestamp, 40)}, which is not within ${toleranceMs / 1_000} seconds of ` +
      "now: the delivery is old, or a clock is wrong",
  );
}

/** What is signed can be read in one way only if neither has what stands between them there. */
function checkForms(id: string, topic: string): void {
  if (!/^[\w-]{1,128}$/.test(id))
    throw new InvalidDelivery("MissingHeader", `the header ${deliveryHeaders.id} is no id of a delivery`);
  try {
    checkTopic(topic);
  } catch (cause) {
    throw new InvalidDelivery("MissingHeader", `the header ${deliveryHeaders.topic} is no topic`, { cause });
  }
}

async function bodyOf(request: DeliveryRequest): Promise<Uint8Array> {
  if ("arrayBuffer" in request) {
    if (!request.bodyUsed) return new Uint8Array(await request.arrayBuffer());
    throw new InvalidOption("the body of the request was read before: give verifyDelivery { headers, body }");
  }
  const { body } = request;
  if (typeof body === "string") return toBytes(body);
  if (body instanceof Uint8Array) return body;
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  throw new InvalidOption(
    `verifyDelivery needs the body as it was sent, a text or bytes, not ${show(body)}: what a parser made of it cannot be checked`,
  );
}

async function isSigned(
  content: Uint8Array<ArrayBuffer>,
  signatures: string,
  secrets: readonly string[],
): Promise<boolean> {
  // Where the header came several times, its values are joined by a comma and a space.
  const given = signatures.split(/\s+/).flatMap((one) => {
    const [, text] = /^v1,([A-Za-z0-9+/]{43}=),?$/.exec(one) ?? [];
    const bytes = text === undefined ? undefined : fromBase64(text);
    return bytes === undefined ? [] : [bytes];
  });
  let isFound = false;
  for (const secret of secrets) {
    const hmac = { name: "HMAC", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("raw", deliveryKey(secret), hmac, false, ["verify"]);
    for (const signature of given.slice(0, maxSignatures)) {
      if (await crypto.subtle.verify("HMAC", key, signature, content)) isFound = true;
    }
  }
  return isFound;
}

function join(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(first.length + second.length);
  joined.set(first);
  joined.set(second, first.length);
  return joined;
}

function parseBody(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch (error) {
    throw new InvalidDelivery("InvalidBody", "the body is signed, but it is no JSON", { cause: error });
  }
}
