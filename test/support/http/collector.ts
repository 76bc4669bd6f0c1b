/** A collector of traces, as OpenTelemetry sends them over HTTP: keeps what it gets. */

import { createServer } from "node:http";
import { afterAll } from "vitest";

export interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  /** The traces that it is linked to. */
  readonly links: readonly string[];
  readonly isError: boolean;
  readonly statusMessage: string | undefined;
  /** `service.name` of the process that sent it. */
  readonly service: string;
}

interface SentValue {
  readonly stringValue?: string;
  readonly intValue?: number | string;
}
interface SentAttribute {
  readonly key: string;
  readonly value: SentValue;
}
interface SentSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: readonly SentAttribute[];
  readonly links?: readonly { readonly traceId: string }[];
  readonly status?: { readonly code?: number; readonly message?: string };
}
interface Sent {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly SentAttribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly SentSpan[] }[];
  }[];
}

export interface Collector {
  readonly url: string;
  readonly spans: readonly Span[];
  /** All that was sent, as it was. */
  text(): string;
}

/** Makes the collector; call it at the top of a test file. */
export async function collectTraces(): Promise<Collector> {
  const spans: Span[] = [];
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      if (request.url !== "/v1/traces") {
        response.writeHead(404).end();
        return;
      }
      const body = Buffer.concat(parts).toString();
      bodies.push(body);
      spans.push(...read(JSON.parse(body) as Sent));
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  const port = await new Promise<number>((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve((server.address() as { port: number }).port));
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${port}`, spans, text: () => bodies.join("\n") };
}

function* read({ resourceSpans }: Sent): Generator<Span> {
  for (const { resource, scopeSpans } of resourceSpans) {
    const service = String(valuesOf(resource.attributes)["service.name"]);
    for (const span of scopeSpans.flatMap((scope) => scope.spans)) {
      yield {
        name: span.name,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId === undefined || span.parentSpanId === "" ? null : span.parentSpanId,
        startMs: Number(BigInt(span.startTimeUnixNano) / 1_000_000n),
        endMs: Number(BigInt(span.endTimeUnixNano) / 1_000_000n),
        attributes: valuesOf(span.attributes ?? []),
        links: (span.links ?? []).map(({ traceId }) => traceId),
        isError: span.status?.code === 2,
        statusMessage: span.status?.message,
        service,
      };
    }
  }
}

function valuesOf(attributes: readonly SentAttribute[]): Record<string, string | number> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? (value.intValue === undefined ? "" : Number(value.intValue)),
    ]),
  );
}
