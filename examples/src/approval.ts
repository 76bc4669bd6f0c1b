/**
 * A human approval: an expense waits for a decision. The workflow sends one reminder, and rejects
 * the expense if nobody answers. While it waits, it is only a row in Postgres, across restarts and
 * deploys, for days.
 */

import { connect, serve, signal, workflow } from "pawl";

const answerTimeout = "1s"; // "3d" in production

const expense = workflow({
  name: "expense",
  signals: { decision: signal<{ approved: boolean; by: string }>() },
  run: async ({ step }, input: { employee: string; euros: number }) => {
    if (input.euros < 50) return { approved: true, by: "the rule for small amounts" };
    await step.run("ask", () => mail("boss", `may ${input.employee} spend ${input.euros} euros?`));
    // A signal that came before this line was reached is found, too.
    let decision = await step.waitForEvent("decision", { timeout: answerTimeout });
    if (decision === null) {
      await step.run("remind", () => mail("boss", `${input.employee} still waits for an answer`));
      decision = await step.waitForEvent("last-chance", { event: "decision", timeout: answerTimeout });
    }
    decision ??= { approved: false, by: "nobody in time" };
    const word = decision.approved ? "yes" : "no";
    await step.run("tell", () => mail(input.employee, `${word}, says ${decision.by}`));
    return decision;
  },
});

function mail(to: string, text: string): void {
  console.log(`to ${to}: ${text}`);
}

const worker = serve([expense]);
const pawl = connect();

const small = await pawl.start(expense, { employee: "Ada", euros: 20 });
console.log(await pawl.result(small.runId));

// In production this is the handler of a button: it knows the run's id, and the dedup key makes a
// second click harmless.
const large = await pawl.start(expense, { employee: "Grace", euros: 900 });
await pawl.signal(large.runId, "decision", { approved: true, by: "Barbara" }, { dedupKey: "click-1" });
await pawl.signal(large.runId, "decision", { approved: true, by: "Barbara" }, { dedupKey: "click-1" });
console.log(await pawl.result(large.runId));

const ignored = await pawl.start(expense, { employee: "Alan", euros: 60 });
console.log(await pawl.result(ignored.runId));

await worker.stop();
await pawl.close();
