import { describe, expect, it } from "vitest";
import { machineGraph } from "../../src/define/machine-graph.js";
import { job } from "../../src/define/job.js";
import { child } from "../../src/define/child.js";
import { machine } from "../../src/define/machine.js";
import { type } from "../../src/define/schema.js";

const resize = job({ name: "resize", run: () => 1 });

const order = machine({
  name: "order",
  state: type<{ isPaid?: boolean }>(),
  initial: "reserve",
  steps: {
    reserve: ({ next, state }) => next("await-payment", state),
    "await-payment": (ctx) => ctx.awaitSignal(["paid", "refused"], "decide", ctx.state, { timeout: "1h" }),
    // ctx.next("a comment is no transition")
    decide: (ctx) => {
      if (ctx.timedOut) return ctx.retry(ctx.state, "1s");
      return ctx.next(ctx.state.isPaid === true ? "print" : "end", ctx.state);
    },
    print: async (ctx) => ctx.spawn("end", [child(resize, { note: 'next("print")' })], ctx.state),
    end: (ctx) => (ctx.children.length > 0 ? ctx.done("printed") : ctx.stop("refused")),
  },
  handle: (_error, ctx) => ctx.next("end", ctx.state),
});

describe("the graph of a machine", () => {
  it("has the transitions that the code of its steps names", () => {
    expect(machineGraph(order)).toEqual({
      initial: "reserve",
      steps: ["reserve", "await-payment", "decide", "print", "end"],
      transitions: [
        { from: "reserve", to: "await-payment", by: "next" },
        { from: "await-payment", to: "decide", by: "awaitSignal", signals: ["paid", "refused"] },
        { from: "decide", to: "decide", by: "retry" },
        { from: "decide", to: "print", by: "next" },
        { from: "decide", to: "end", by: "next" },
        { from: "print", to: "end", by: "spawn" },
      ],
      ends: [
        { from: "end", by: "done" },
        { from: "end", by: "stop" },
      ],
      onError: ["end"],
    });
  });

  it("is Mermaid text with ids that Mermaid can read", () => {
    expect(order.diagram()).toBe(
      [
        "stateDiagram-v2",
        '    state "await-payment" as await_payment',
        '    state "end" as end_5',
        '    state "any step" as any_step',
        "    [*] --> reserve",
        "    reserve --> await_payment",
        "    await_payment --> decide: paid or refused",
        "    decide --> decide: retry",
        "    decide --> print",
        "    decide --> end_5",
        "    print --> end_5: children",
        "    any_step --> end_5: error",
        "    end_5 --> [*]: done",
        "    end_5 --> [*]: stop",
      ].join("\n"),
    );
  });

  it("leaves out a step whose name the code computes, and never calls the code", () => {
    const target = "last".replace("a", "a");
    const sly = machine({
      name: "sly",
      steps: {
        start: (ctx) => {
          if (target === "last") throw new Error("called");
          return ctx.next(target as "last", {});
        },
        last: (ctx) => ctx.done(/["']/.test("'")),
      },
    });
    expect(machineGraph(sly)).toMatchObject({ transitions: [], ends: [{ from: "last", by: "done" }] });
  });
});
