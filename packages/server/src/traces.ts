/**
 * Sends the spans of this process to an OpenTelemetry collector, over HTTP (`/v1/traces`). The
 * library makes spans once a provider is registered; this registers one, for the `pawl` command. A
 * program that embeds the server registers its own. The variables of OpenTelemetry
 * (`OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_EXPORTER_OTLP_*`, `OTEL_TRACES_SAMPLER`,
 * `OTEL_BSP_*`) apply too.
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
  /**
   * The collector, such as `http://localhost:4318`. Default: `OTEL_EXPORTER_OTLP_ENDPOINT`, else
   * `http://localhost:4318`.
   */
  readonly endpoint?: string | undefined;
}

export interface Traces {
  /** Sends the remaining spans and stops. Never rejects. */
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
      // A collector that does not answer must not keep the process from stopping.
      await provider.shutdown().catch(() => {});
    },
  };
}

/** Adds the path of traces to a URL without one, as OpenTelemetry does for its variable. */
function tracesUrl(endpoint: string): string {
  const url = new URL(endpoint);
  if (!url.pathname.endsWith("/v1/traces")) url.pathname = `${url.pathname.replace(/\/$/, "")}/v1/traces`;
  return url.href;
}
