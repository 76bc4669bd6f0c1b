/** Shows the person who paused a queue or a definition, with time and reason. */

import type { JSX } from "preact";
import type { Pause } from "../api/types.js";
import { Badge } from "./status.js";
import { Time } from "./time.js";

export function PausedBy({ pause }: { pause: Pause | undefined }): JSX.Element | null {
  if (pause === undefined) return null;
  const { version, by, reason, since } = pause;
  return (
    <p class="paused-by">
      <Badge look="paused" />{" "}
      <span class="muted">
        {version !== null && `version ${version} `}by {by}, <Time at={since} />
        {reason !== null && `: ${reason}`}
      </span>
    </p>
  );
}
