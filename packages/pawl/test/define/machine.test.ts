import { describe, expect, test } from "vitest";
import * as z from "zod";

import { InvalidOption } from "../../dist/values/errors.js";
import { machine } from "../../dist/define/machine.js";
import { stepHelpers } from "../../dist/define/outcome.js";
import { untyped } from "./support/untyped.js";

const untypedMachine = untyped(machine);
const handle = (error: unknown) => stepHelpers.stop(error);
const steps = { start: () => stepHelpers.done(null) };

describe("a machine", () => {
  test("is frozen data with every default filled in", () => {
    const definition = machine({ name: "order", steps });
    expect(Object.isFrozen(definition)).toBe(true);
    expect(definition).toMatchObject({
      kind: "machine",
      name: "order",
      version: 1,
      queue: "default",
      priority: 0,
      retentionMs: 30 * 86_400_000,
      maxCrashes: null,
      initial: "start",
      state: undefined,
      handle: undefined,
    });
    expect([...definition.steps]).toEqual([["start", steps.start]]);
  });

  test("keeps its options", () => {
    const state = z.object({ n: z.number() });
    const given = { first: steps.start, second: steps.start };
    const definition = machine({ name: "order", initial: "second", state, steps: given, handle });
    expect(definition).toMatchObject({ initial: "second", state, handle });
    expect([...definition.steps.keys()]).toEqual(["first", "second"]);
  });

  test("does not change when the given object does", () => {
    const given = { ...steps };
    const definition = machine({ name: "order", steps: given });
    Reflect.deleteProperty(given, "start");
    expect(definition.steps.has("start")).toBe(true);
  });

  test("has steps that work on a ctx taken apart", () => {
    const definition = machine({
      name: "order",
      steps: { start: ({ state, next }) => next("start", { ...state, n: 1 }) },
    });
    const step = untyped(definition.steps.get("start")!);
    expect(step({ ...stepHelpers, state: { m: 0 } })).toMatchObject({ kind: "next", state: { m: 0, n: 1 } });
  });
});

describe("a machine is refused where it is defined", () => {
  const name = "order";
  const refused: [unknown, RegExp][] = [
    [null, /^the options of machine must be an object, not null/],
    [{ name }, /^steps must be an object with at least one step, not undefined/],
    [{ name, steps: {} }, /^steps must be an object with at least one step, not {}/],
    [{ name, steps: [steps.start] }, /^steps must be an object/],
    [{ name, steps: { "a b": steps.start } }, /^the name of a step must be .*, not "a b"/],
    [{ name, steps: { start: 1 } }, /^step "start" must be a function, not 1/],
    [
      { name, steps: { begin: steps.start } },
      /^initial must be given, because no step is called "start"; the steps/,
    ],
    [
      { name, steps, initial: "strat" },
      /^initial must be a step, not "strat"; the steps are .*; did you mean "start"\?$/,
    ],
    [{ name, steps, initial: "toString" }, /^initial must be a step/],
    [{ name, steps, initial: 1 }, /^initial must be a step, not 1; the steps are start/],
    [{ name, steps, state: { n: 1 } }, /^state must be a schema/],
    [{ name, steps, handle: "stop" }, /^handle must be a function/],
    [{ name, steps, run: steps.start }, /^unknown option "run" in the options of machine/],
    [{ name: "", steps }, /^the name of a definition must be/],
  ];
  for (const [options, message] of refused) {
    test(String(message), () => {
      expect(() => untypedMachine(options)).toThrow(InvalidOption);
      expect(() => untypedMachine(options)).toThrow(message);
    });
  }
});
