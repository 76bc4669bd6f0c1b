/** A worker with a short lease, whose runs never end: to be killed. */

import { job, serve } from "pawl";

const hold = job({ name: "hold", run: () => new Promise(() => {}) });
serve([hold], { url: process.argv[2], lease: "5s", heartbeat: "1s" });
