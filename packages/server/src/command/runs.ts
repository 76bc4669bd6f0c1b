/** `pawl runs`: looks at runs, and starts, signals and cancels them. */

import type { Command } from "commander";
import { addRunsCancel, addRunsSignal } from "./runs-act.js";
import { addRunsList } from "./runs-list.js";
import { addRunsShow, addRunsWhy } from "./runs-show.js";
import { addRunsStart } from "./runs-start.js";
import { addRunsTail } from "./runs-tail.js";
import { addGroup, type Session } from "./session.js";

export function addRuns(program: Command, session: Session): void {
  const runs = addGroup(program, session, {
    name: "runs",
    description: "look at runs, start, signal and cancel them",
    examples: ["pawl runs list --status failed", "pawl runs why 64"],
  });
  addRunsList(runs, session);
  addRunsShow(runs, session);
  addRunsStart(runs, session);
  addRunsSignal(runs, session);
  addRunsCancel(runs, session);
  addRunsWhy(runs, session);
  addRunsTail(runs, session);
}
