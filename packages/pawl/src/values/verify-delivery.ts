/**
 * `verifyDelivery`: the receiver of webhook deliveries calls it before it trusts one. It checks the
 * time, then the signature over topic, id, time and body in constant time, and returns the
 * delivery. It needs only WebCrypto, so it works in every runtime.
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

/** A `Request` of `fetch`, or the headers and the raw body. */
export type DeliveryRequest =
  | {
      readonly headers: { get(name: string): string | null };
      readonly bodyUsed: boolean;
      arrayBuffer(): Promise<ArrayBuffer>;
    }
  | { readonly headers: DeliveryHeaders; readonly body: string | Uint8Array | ArrayBuffer };

export interface VerifyOptions {
  /** How far the time of the delivery may be from now, in both directions. Default "5m". */
  readonly tolerance?: Duration | undefined;
}

/** A delivery with a valid signature. */
export interface VerifiedDelivery<Body = Json> {
  /** The same in every attempt: deduplicate by it. */
  readonly id: string;
  readonly topic: string;
  /** The time of this attempt. */
  readonly timestamp: Date;
  readonly body: Body;
}

/** Further signatures are ignored: each costs an HMAC over the body. */
const maxSignatures = 10;

/**
 * Verifies a request and returns its delivery, or throws `InvalidDelivery`. You may pass several
 * secrets, one of which must match: while you rotate a secret, pass the old and the new one.
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
      `no signature in the header ${deliveryHeaders.topicSignature} matches this secret, topic, id, timestamp and body; ` +
        "check the secret, and pass the body exactly as it was received",
    );
  }
  return { id, topic, timestamp: time, body: parseBody(body) as Body };
}

function checkRequest(request: unknown): void {
  if (isObject(request) && isObject(request["headers"])) return;
  throw new InvalidOption(
    `verifyDelivery takes a Request, or { headers, body } with the raw body, not ${show(request)}`,
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
        ? "; Pawl sends it only if the subscription has a secret"
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
      "now; check the clocks of both machines, or raise tolerance",
  );
}

/** The signed text is unambiguous only if id and topic contain none of its separators. */
function checkForms(id: string, topic: string): void {
  if (!/^[\w-]{1,128}$/.test(id))
    throw new InvalidDelivery(
      "MissingHeader",
      `the header ${deliveryHeaders.id} is not the id of a delivery`,
    );
  try {
    checkTopic(topic);
  } catch (cause) {
    throw new InvalidDelivery("MissingHeader", `the header ${deliveryHeaders.topic} is not a topic`, {
      cause,
    });
  }
}

async function bodyOf(request: DeliveryRequest): Promise<Uint8Array> {
  if ("arrayBuffer" in request) {
    if (!request.bodyUsed) return new Uint8Array(await request.arrayBuffer());
    throw new InvalidOption(
      "the body of the request was read before; pass { headers, body } with the raw body to verifyDelivery",
    );
  }
  const { body } = request;
  if (typeof body === "string") return toBytes(body);
  if (body instanceof Uint8Array) return body;
  if (body instanceof ArrayBuffer) return new Uint8Array(body);
  throw new InvalidOption(
    `verifyDelivery needs the raw body, a string or bytes, not ${show(body)}; a parsed body cannot be verified`,
  );
}

async function isSigned(
  content: Uint8Array<ArrayBuffer>,
  signatures: string,
  secrets: readonly string[],
): Promise<boolean> {
  // A header that occurs several times is joined by a comma and a space.
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
    throw new InvalidDelivery("InvalidBody", "the signature is valid, but the body is not JSON", {
      cause: error,
    });
  }
}
