import { describe } from "vitest";
import { testDatabase } from "../support/database.js";
import { testEngine } from "../support/engine.js";
import { queueLaws } from "./queue-laws.js";

const database = await testDatabase();
const { pawl } = testEngine(database);

describe("queues, straight to Postgres", () => queueLaws(pawl, database));
