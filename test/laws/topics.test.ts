import { describe } from "vitest";
import { testDatabase } from "../support/database.js";
import { testEngine } from "../support/engine.js";
import { topicLaws } from "./topic-laws.js";

const database = await testDatabase();
const { pawl } = testEngine(database);

describe("topics, straight to Postgres", () => topicLaws(pawl, database));
