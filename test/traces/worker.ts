/** A worker process that sends its spans to a collector: serves until it is told to stop, or killed. */

import { sendTraces } from "@pawl/server";
import { serve } from "pawl";
import { journey, leaf } from "./definitions.js";

const traces = sendTraces({ endpoint: process.env["OTLP_ENDPOINT"] });
const worker = serve([journey, leaf], {
  lease: "3s",
  heartbeat: "300ms",
  reapInterval: "100ms",
});
await worker.ready;
process.send?.("ready");
process.once("message", () => {
  void worker
    .stop()
    .then(() => traces.close())
    .then(() => process.exit(0));
});
