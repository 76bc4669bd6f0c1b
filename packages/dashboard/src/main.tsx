/** Starts the dashboard. */

import { render } from "preact";
import { followToken } from "./api/me.js";
import { followLinks } from "./api/router.js";
import { App } from "./app.js";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/parts.css";
import "uplot/dist/uPlot.min.css";
import "./styles/run.css";
import "./styles/charts.css";

followLinks();
followToken();
const room = document.querySelector("#app");
if (room !== null) render(<App />, room);
