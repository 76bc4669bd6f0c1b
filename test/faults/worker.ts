/** A worker process of the fault tests: serves until it is killed or told to stop by SIGTERM. */

import { serve } from "pawl";
import { fragile, journey, leaving, slow, suicidal } from "./definitions.js";
import { shapes } from "./shapes.js";

const worker = serve([...shapes, suicidal, fragile, leaving, slow, journey], {
  queues: { default: 40 },
  lease: "2s",
  heartbeat: "400ms",
  reapInterval: "200ms",
  maxPollInterval: "200ms",
});
await worker.ready;
process.send?.("ready");
process.on("SIGTERM", () => void worker.stop().then(() => process.exit(0)));
