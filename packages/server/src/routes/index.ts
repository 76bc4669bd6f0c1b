/** All routes of the API, one file per area. A new file is added here. Called by `createServer`. */

import type { Backend } from "../backend/backend.js";
import type { App } from "../http/app.js";
import { actionRoutes } from "./actions.js";
import { bulkRoutes } from "./bulk.js";
import { healthRoutes } from "./health.js";
import { keyRoutes } from "./keys.js";
import { limitRoutes } from "./limits.js";
import { listingRoutes } from "./listings.js";
import { metricsRoutes } from "./metrics.js";
import { pauseRoutes } from "./pauses.js";
import { queueRoutes } from "./queues.js";
import { eventRoutes } from "../reports/event-routes.js";
import { reportRoutes } from "../reports/report-routes.js";
import { runRoutes } from "./runs.js";
import { scheduleRoutes } from "./schedules.js";
import { startRoutes } from "./starts.js";
import { topicRoutes } from "./topics.js";

export function addRoutes(app: App, backend: Backend, { metricsOpen }: { metricsOpen: boolean }): void {
  healthRoutes(app, backend);
  startRoutes(app, backend);
  runRoutes(app, backend);
  keyRoutes(app, backend);
  listingRoutes(app, backend);
  limitRoutes(app, backend);
  bulkRoutes(app, backend);
  actionRoutes(app, backend);
  pauseRoutes(app, backend);
  reportRoutes(app, backend);
  eventRoutes(app, backend);
  scheduleRoutes(app, backend);
  metricsRoutes(app, backend, metricsOpen);
  queueRoutes(app, backend);
  topicRoutes(app, backend);
}
