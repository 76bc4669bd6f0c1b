/**
 * Sends the spans of this process to an OpenTelemetry collector, over HTTP (`/v1/traces`). The library makes spans as soon as a provider is
 * registered; this registers one, and is for the `pawl` command: a program that embeds the server, or serves definitions, registers its own.
 * The variables of OpenTelemetry (`OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_EXPORTER_OTLP_*`, `OTEL_TRACES_SAMPLER`, `OTEL_BSP_*`) hold too.
 */

import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";

export interface TraceOptions {
  /** The collector, such as `http://localhost:4318`. Default: `OTEL_EXPORTER_OTLP_ENDPOINT`, else `http://localhost:4318`. */
  readonly endpoint?: string | undefined;
}

export interface Traces {
  /** Sends what is left, and sends no more. Never rejects. */
  close(): Promise<void>;
}

export function sendTraces({ endpoint }: TraceOptions = {}): Traces {
  const exporter = new OTLPTraceExporter(endpoint === undefined ? {} : { url: tracesUrl(endpoint) });
  const provider = new NodeTracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ "service.name": "pawl" }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  provider.register();
  return {
    close: async () => {
      // A collector that is gone must not keep anybody from stopping.
      await provider.shutdown().catch(() => {});
    },
  };
}

/** As the variable of OpenTelemetry is read: a URL without a path gets that of traces. */
function tracesUrl(endpoint: string): string {
  const url = new URL(endpoint);
  if (!url.pathname.endsWith("/v1/traces")) url.pathname = `${url.pathname.replace(/\/$/, "")}/v1/traces`;
  return url.href;
}
