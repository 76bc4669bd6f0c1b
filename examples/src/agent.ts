/**
 * An agent: a model that calls tools until it has an answer. Every call of the model and of a tool
 * is a step. So a crash in the twentieth turn repeats no turn, and you pay for none twice. The body
 * rebuilds the messages from the recorded steps.
 */

import { connect, NonRetryable, serve, StepFailed, workflow } from "pawl";

type ToolCall = { tool: string; argument: string };
type Message = { role: "user" | "assistant" | "tool"; text: string; calls?: ToolCall[] };

const maxTurns = 10;

const support = workflow({
  name: "support",
  run: async ({ step }, input: { question: string }) => {
    const messages: Message[] = [{ role: "user", text: input.question }];
    for (let turn = 0; turn < maxTurns; turn++) {
      const reply = await step.run(`model-${turn}`, () => model(messages));
      messages.push(reply);
      if (reply.calls === undefined) return { answer: reply.text, turns: turn + 1 };
      // The tools of one turn are called at the same time, each recorded by itself.
      const results = await Promise.all(
        reply.calls.map(async ({ tool, argument }, index): Promise<Message> => {
          try {
            const text = await step.run(`tool-${turn}-${index}`, () => callTool(tool, argument));
            return { role: "tool", text };
          } catch (error) {
            // Tell the model, which may try something else.
            if (error instanceof StepFailed) return { role: "tool", text: error.error.message };
            throw error;
          }
        }),
      );
      messages.push(...results);
    }
    throw new Error(`no answer after ${maxTurns} turns`);
  },
});

// A stand-in for a real model: its answer follows from the last messages.
function model(messages: readonly Message[]): Message {
  const last = messages.at(-1)!;
  console.log(`model: ${messages.length} messages`);
  const call = (...calls: ToolCall[]): Message => ({ role: "assistant", text: "", calls });
  if (last.role === "user") return call({ tool: "find-order", argument: "last order" });
  if (last.text === "order 7") {
    return call({ tool: "track", argument: "order 7" }, { tool: "weather", argument: "Lisbon" });
  }
  return { role: "assistant", text: `Your ${messages.at(-2)!.text}. I cannot tell the weather.` };
}

const tools: Readonly<Record<string, (argument: string) => string>> = {
  "find-order": () => "order 7",
  track: (order) => `${order} is in Lisbon`,
};

function callTool(name: string, argument: string): string {
  console.log(`tool: ${name} ${argument}`);
  const tool = tools[name];
  if (tool === undefined) throw new NonRetryable(`there is no tool "${name}"`);
  return tool(argument);
}

const worker = serve([support]);
const pawl = connect();
const { runId } = await pawl.start(support, { question: "Where is my parcel?" });
console.log(await pawl.result(runId));
await worker.stop();
await pawl.close();
