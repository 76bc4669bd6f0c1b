import { describe, expect, it } from "vitest";
import { scenarios } from "./scenarios.js";
import { search } from "./search.js";

describe("protocol", () => {
  for (const scenario of scenarios) {
    it(scenario.name, () => {
      const t = Date.now();
      const found = search(scenario);
      console.log(scenario.name, found.states, Date.now() - t, "ms");
      expect(found.counterexample).toBeNull();
    });
  }
});
