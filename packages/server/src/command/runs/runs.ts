/** `pawl runs`: the commands that list, show, start, signal, pause, cancel and rerun runs. */

import type { Command } from "commander";
import { addRunsCancel, addRunsSignal } from "./signal-and-cancel.js";
import { addRunsFind, addRunsSignalAll } from "./find.js";
import { addRunsBulk } from "./bulk.js";
import { addRunsRerun } from "./rerun.js";
import { addRunsList } from "./list.js";
import { addRunsPause, addRunsResume } from "./pause.js";
import { addRunsShow, addRunsWhy } from "./show.js";
import { addRunsStart } from "./start.js";
import { addRunsTail } from "./tail.js";
import { addGroup, type Session } from "../terminal/session.js";

export function addRuns(program: Command, session: Session): void {
  const runs = addGroup(program, session, {
    name: "runs",
    description: "list, show, start, signal, pause, cancel and rerun runs",
    examples: ["pawl runs list --status failed", "pawl runs why 64"],
  });
  addRunsList(runs, session);
  addRunsFind(runs, session);
  addRunsShow(runs, session);
  addRunsStart(runs, session);
  addRunsSignal(runs, session);
  addRunsSignalAll(runs, session);
  addRunsCancel(runs, session);
  addRunsPause(runs, session);
  addRunsResume(runs, session);
  addRunsRerun(runs, session);
  addRunsBulk(runs, session);
  addRunsWhy(runs, session);
  addRunsTail(runs, session);
}
