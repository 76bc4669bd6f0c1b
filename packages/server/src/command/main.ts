#!/usr/bin/env node
/** The `pawl` command. */

import { Command } from "commander";

const program = new Command("pawl").description("durable execution on PostgreSQL");
await program.parseAsync();
