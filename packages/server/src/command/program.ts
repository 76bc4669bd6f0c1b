/** All commands of `pawl`. */

import type { Command } from "commander";
import { addActions } from "./actions.js";
import { addBulk } from "./bulk.js";
import { addCheck } from "./check.js";
import { addCompletion } from "./completion/completion.js";
import { addDev } from "./dev/dev.js";
import { addDoctor } from "./doctor.js";
import { addFork } from "./fork.js";
import { addHold } from "./hold.js";
import { addInit } from "./init/init.js";
import { addLimits } from "./limits.js";
import { addMigrate } from "./migrate.js";
import { addPauses } from "./pauses.js";
import { addRuns } from "./runs/runs.js";
import { addSchedules } from "./schedules.js";
import { newProgram, type Session } from "./terminal/session.js";
import { addServer } from "./server.js";
import { addSteps } from "./runs/steps.js";
import { addToken } from "./token.js";
import { version } from "./terminal/version.js";

export function createProgram(session: Session): Command {
  const program = newProgram(session, "Pawl: durable execution on PostgreSQL", version);
  addInit(program, session);
  addDev(program, session);
  addServer(program, session);
  addToken(program, session);
  addMigrate(program, session);
  addRuns(program, session);
  addSteps(program, session);
  addBulk(program, session);
  addActions(program, session);
  addLimits(program, session);
  addPauses(program, session);
  addSchedules(program, session);
  addCheck(program, session);
  addDoctor(program, session);
  addFork(program, session);
  addHold(program, session);
  addCompletion(program, session);
  return program;
}
