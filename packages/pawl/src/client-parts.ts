/**
 * `pawl/client`: `connect` to a server, the errors, and the types. Nothing that it imports needs PostgreSQL's driver or Node: it works
 * in browsers and wherever else there is `fetch`.
 */

import type { Logger } from "./define/logger.js";
import { checkOptions } from "./define/options.js";
import { checkLogger, checkMaxPayload } from "./engine/serve-options.js";
import { HttpClient } from "./http-client.js";
import type { Pawl } from "./pawl.js";
import { checkServerUrl } from "./store/http/address.js";

export interface ConnectOptions {
  /** What to show to the server. */
  readonly token?: string | undefined;
  /** How long an input may be as JSON. Default 1 MiB, at most 16 MiB. */
  readonly maxPayloadBytes?: number | undefined;
  readonly logger?: Logger | undefined;
}

/** The client of one server (`http://…`, `https://…`). */
export function connect(url: string, options: ConnectOptions = {}): Pawl {
  const given = checkOptions(options, ["token", "maxPayloadBytes", "logger"], "the options of connect");
  return new HttpClient({
    ...checkServerUrl(url, given.token),
    maxPayloadBytes: checkMaxPayload(given.maxPayloadBytes),
    logger: checkLogger(given.logger),
  });
}

export type { BrokenRun, Checked } from "./check.js";
export type { AnyDefinition, InputOf, Job, Machine, OutputOf, RunId, Workflow } from "./define/definition.js";
export type { Duration } from "./define/duration.js";
export type { ErrorRecord } from "./define/error-record.js";
export * from "./define/errors.js";
export type { Json, Jsonify } from "./define/json-types.js";
export type { Logger, LogMethod } from "./define/logger.js";
export type { Phase, Status } from "./define/phase.js";
export type { RateLimit } from "./define/rate-limit.js";
export type { StartOptions } from "./define/start-options.js";
export type { LimitOptions } from "./engine/limits.js";
export type { Cancelled, CancelOptions, Limit, Pawl, ResultOptions } from "./pawl.js";
export type { CountOptions, ListOptions, Page, Run } from "./run.js";
export type {
  Acked,
  Extended,
  Message,
  MessageReceipt,
  Queues,
  QueueStats,
  ReceiveOptions,
  SendItem,
  SendOptions,
  SentMessage,
} from "./queues.js";
export type { Signalled, Started, StartItem } from "./sender.js";
export type { Step } from "./steps.js";
export type { StepKind } from "./store/journal.js";
export type {
  Published,
  PublishOptions,
  Subscribed,
  Subscription,
  Subscriptions,
  SubscriptionTarget,
  Topics,
} from "./topics.js";
export {
  type DeliveryHeaders,
  type DeliveryRequest,
  type VerifiedDelivery,
  verifyDelivery,
  type VerifyOptions,
} from "./verify-delivery.js";
export type { Why, WhyReason } from "./why.js";
