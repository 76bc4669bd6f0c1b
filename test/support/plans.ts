/** The plans inside SQL functions, as the server itself reports them (auto_explain, nested statements). */

import type pg from "pg";

export interface Plan {
  "Node Type": string;
  "Relation Name"?: string;
  "Index Name"?: string;
  "Actual Loops"?: number;
  "Actual Rows"?: number;
  "Rows Removed by Filter"?: number;
  "Rows Removed by Join Filter"?: number;
  Plans?: Plan[];
}

/** The plans of the statements inside the functions that these calls execute. */
export async function plansOf(client: pg.Client, calls: string[]): Promise<Plan[]> {
  const plans: Plan[] = [];
  client.removeAllListeners("notice");
  client.on("notice", ({ message }) => {
    const json = /plan:\s*(\{[\s\S]*\})/.exec(message ?? "")?.[1];
    if (json !== undefined) plans.push((JSON.parse(json) as { Plan: Plan }).Plan);
  });
  await client.query("load 'auto_explain'");
  await client.query("set auto_explain.log_min_duration = 0");
  await client.query("set auto_explain.log_analyze = on");
  await client.query("set auto_explain.log_nested_statements = on");
  await client.query("set auto_explain.log_format = json");
  await client.query("set auto_explain.log_level = notice");
  // Preparations of the test itself are none of the functions' plans, and neither is the statement that calls a function.
  for (const call of calls) {
    const before = plans.length;
    await client.query(call);
    plans.length = call.startsWith("update") ? before : plans.length - 1;
  }
  return plans;
}

/** The nodes of a plan, from the top. */
export function* nodes(plan: Plan): Generator<Plan> {
  yield plan;
  for (const inner of plan.Plans ?? []) yield* nodes(inner);
}
