import { NonRetryable, StepFailed, workflow } from "pawl";
import { describe, expect, it } from "vitest";
import { testDatabase } from "../../support/database.js";
import { testEngine } from "../../support/engine.js";
import { gate } from "../../support/gate.js";
import { journalOf, makeDue, suspended } from "../../support/journal.js";
import { until } from "../../support/until.js";

const database = await testDatabase();
const { pawl, serve } = testEngine(database);
const { sql } = database;

/** A backoff that waits in place: below a second. */
const soon = { backoff: { kind: "fixed", base: 5, jitter: 0 } } as const;
/** One that takes the run off its worker. */
const later = { backoff: { kind: "fixed", base: "1h", jitter: 0 } } as const;

describe("a step that fails", () => {
  it("is tried again in place after a backoff below a second; its attempt is counted", async () => {
    let calls = 0;
    const attempts: number[] = [];
    const flaky = workflow({
      name: "flaky",
      run: async ({ step }) => {
        calls++;
        return step.run(
          "flaky",
          ({ attempt }) => {
            attempts.push(attempt);
            if (attempt < 3) throw new Error(`attempt ${attempt}`);
            return "at last";
          },
          { retry: { attempts: 4, ...soon } },
        );
      },
    });
    await serve([flaky]);
    const { runId } = await pawl.start(flaky);
    expect(await pawl.result(runId)).toBe("at last");
    expect(attempts).toEqual([0, 1, 2, 3]);
    expect(calls).toBe(1);
    expect(await journalOf(database, runId)).toMatchObject([
      { name: "flaky", attempt: 3, output: "at last", error: null },
    ]);
  });

  it("suspends the run for a longer backoff; counter, error and due time are durable", async () => {
    let calls = 0;
    const patient = workflow({
      name: "patient",
      run: async ({ step }) => {
        calls++;
        await step.run("before", () => 1);
        return step.run(
          "flaky",
          ({ attempt }) => {
            if (attempt < 2) throw new Error(`attempt ${attempt}`);
            return attempt;
          },
          { retry: { attempts: 3, ...later } },
        );
      },
    });
    const first = await serve([patient]);
    const { runId } = await pawl.start(patient);
    await suspended(database, runId);
    await first.stop();
    expect((await journalOf(database, runId))[1]).toMatchObject({
      name: "flaky",
      kind: "run",
      completed: false,
      attempt: 1,
      error: { message: "attempt 0" },
    });
    const [due] = await sql<{ same: boolean; hour: boolean }>(
      `select r.eligible_at = s.due_at as same, s.due_at between clock_timestamp() + interval '59 minutes' and
         clock_timestamp() + interval '1 hour' as hour
       from runs r join steps s on s.run_id = r.id and s.name = 'flaky' where r.id = $1`,
      [runId],
    );
    expect(due).toEqual({ same: true, hour: true });
    // Another worker goes on with the next attempt.
    await serve([patient]);
    await makeDue(database, runId);
    await until("it failed again", async () => (await journalOf(database, runId))[1]!.attempt === 2);
    await suspended(database, runId);
    await makeDue(database, runId);
    expect(await pawl.result(runId)).toBe(2);
    expect(calls).toBe(3);
  });

  it("throws StepFailed into the body when its attempts are used up: catchable, and the same on every replay", async () => {
    const caught: StepFailed[] = [];
    let calls = 0;
    const caring = workflow({
      name: "caring",
      run: async ({ step }) => {
        try {
          await step.run(
            "doomed",
            () => {
              calls++;
              throw Object.assign(new RangeError("out of luck", { cause: new Error("deep") }), {
                code: "E_LUCK",
              });
            },
            { retry: { attempts: 2, ...soon } },
          );
        } catch (error) {
          caught.push(error as StepFailed);
        }
        await step.waitForEvent("again");
        return "went on";
      },
    });
    await serve([caring]);
    const { runId } = await pawl.start(caring);
    await suspended(database, runId);
    await pawl.signal(runId, "again", {});
    expect(await pawl.result(runId)).toBe("went on");
    expect(calls).toBe(2);
    expect(caught).toHaveLength(2);
    for (const error of caught) {
      expect(error).toBeInstanceOf(StepFailed);
      expect(error.message).toBe('step "doomed" failed: out of luck');
      expect(error.step).toBe("doomed");
      expect(error.error).toMatchObject({
        name: "RangeError",
        message: "out of luck",
        code: "E_LUCK",
        cause: { name: "Error", message: "deep" },
      });
    }
    expect(JSON.stringify(caught[1]!.error)).toBe(JSON.stringify(caught[0]!.error));
  });

  it("that the body does not catch fails the run with that cause, at that step", async () => {
    const doomed = workflow({
      name: "doomed",
      run: async ({ step }) =>
        step.run("charge", () => Promise.reject(new Error("card refused")), { retry: { attempts: 1 } }),
    });
    await serve([doomed]);
    const { runId } = await pawl.start(doomed);
    await expect(pawl.result(runId)).rejects.toMatchObject({
      code: "RunFailed",
      error: {
        code: "StepFailed",
        step: "charge",
        message: 'step "charge" failed: card refused',
        cause: { name: "Error", message: "card refused" },
      },
    });
  });

  it("with NonRetryable is not tried again, whatever attempts are left", async () => {
    let calls = 0;
    const hopeless = workflow({
      name: "hopeless",
      run: async ({ step }) =>
        step.run("once", () => {
          calls++;
          throw new NonRetryable("no such account");
        }),
    });
    await serve([hopeless]);
    const { runId } = await pawl.start(hopeless);
    await expect(pawl.result(runId)).rejects.toMatchObject({
      error: { code: "StepFailed", cause: { code: "NonRetryable", message: "no such account" } },
    });
    expect(calls).toBe(1);
    expect(await journalOf(database, runId)).toMatchObject([{ attempt: 0, completed: true }]);
  });

  it("has three attempts by default, with a second and two in between", async () => {
    const attempts: number[] = [];
    const usual = workflow({
      name: "usual",
      run: async ({ step }) =>
        step.run("always", ({ attempt }) => {
          attempts.push(attempt);
          throw new Error("always");
        }),
    });
    await serve([usual]);
    const { runId } = await pawl.start(usual);
    const waits: number[] = [];
    for (const attempt of [1, 2]) {
      await until(`attempt ${attempt} is due`, async () => {
        const [step] = await sql<{ ms: string }>(
          `select extract(epoch from due_at - clock_timestamp()) * 1000 as ms from steps
           where run_id = $1 and attempt = $2 and due_at is not null`,
          [runId, attempt],
        );
        if (step !== undefined) waits[attempt - 1] = Number(step.ms);
        return step !== undefined;
      });
      // One that waits in place is found by its own timer.
      await makeDue(database, runId);
    }
    await expect(pawl.result(runId)).rejects.toThrow("always");
    expect(attempts).toEqual([0, 1, 2]);
    expect(waits[0]).toBeLessThanOrEqual(1_000);
    expect(waits[1]).toBeLessThanOrEqual(2_000);
  });

  it("may throw anything, also what cannot be described", async () => {
    const strange = workflow({
      name: "strange",
      run: async ({ step }) => {
        const caught: string[] = [];
        for (const [index, thrown] of [undefined, null, 7, "text", { message: "like" }].entries()) {
          // oxlint-disable-next-line typescript/prefer-promise-reject-errors
          const failing = step.run(`n-${index}`, () => Promise.reject(thrown), { retry: { attempts: 1 } });
          await failing.catch((error: StepFailed) => caught.push(error.error.message));
        }
        return caught;
      },
    });
    await serve([strange]);
    const messages = await pawl.result((await pawl.start(strange)).runId);
    expect(messages).toHaveLength(5);
    expect(messages.slice(3)).toEqual(["text", "like"]);
  });

  it("while it waits for its next attempt, a step beside it goes on, and its attempt comes while that runs", async () => {
    const running = gate();
    const both = workflow({
      name: "both",
      run: async ({ step }) => {
        const long = step.run("long", async () => (await running.pass(), "long"));
        const flaky = step.run(
          "flaky",
          ({ attempt }) => {
            if (attempt === 0) throw new Error("first");
            return "flaky";
          },
          { retry: { attempts: 2, backoff: { kind: "fixed", base: 1_005, jitter: 0 } } },
        );
        return Promise.race([long, flaky]);
      },
    });
    await serve([both]);
    const { runId } = await pawl.start(both);
    expect(await pawl.result(runId)).toBe("flaky");
    expect(running.entered()).toBe(1);
    running.open();
  });
});

describe("maxStepDuration", () => {
  it("ends an attempt that takes longer with StepTimeout; only the signal of that step is aborted", async () => {
    const stuck = gate();
    const seen: Record<string, AbortSignal> = {};
    const slow = workflow({
      name: "slow",
      run: async ({ step, signal }) => {
        seen["body"] = signal;
        const other = step.run("other", (own) => {
          seen["other"] = own.signal;
          return "synchronous";
        });
        await step
          .run(
            "stuck",
            async (own) => {
              seen["stuck"] = own.signal;
              await stuck.pass();
            },
            { retry: { attempts: 1 } },
          )
          .catch((error: StepFailed) => expect(error.error.code).toBe("StepTimeout"));
        await other;
        return step.run("after", () => ({ isAborted: signal.aborted }));
      },
    });
    await serve([slow], { maxStepDuration: 50 });
    expect(await pawl.result((await pawl.start(slow)).runId)).toEqual({ isAborted: false });
    expect(seen["stuck"]!.aborted).toBe(true);
    expect(seen["other"]!.aborted).toBe(false);
    // The body has ended.
    expect(seen["body"]!.aborted).toBe(true);
    stuck.open();
  });

  it("holds for whatever can be awaited, not only for promises", async () => {
    const lazy = workflow({
      name: "lazy",
      run: async ({ step }) =>
        // oxlint-disable-next-line unicorn/no-thenable
        step.run("lazy", () => ({ then: () => {} }) as unknown as Promise<null>, { retry: { attempts: 1 } }),
    });
    await serve([lazy], { maxStepDuration: 50 });
    await expect(pawl.result((await pawl.start(lazy)).runId)).rejects.toMatchObject({
      error: { cause: { code: "StepTimeout" } },
    });
  });
});
