/**
 * Compile-time laws of what the client reads off definitions: the id of a run knows the signals and the output of
 * its definition, and a plain string is as good as an id, untyped. Each misuse is an error with the code and on the
 * text that its comment says; `misuse.test.ts` compiles this file without the directives and checks both.
 */

import type {
  AnyDefinition,
  DefinitionOf,
  InputOf,
  OutputOf,
  RunId,
  SignalArguments,
  SignalNameOf,
  StartTarget,
} from "../../dist/define/definition.js";
import { job } from "../../dist/define/job.js";
import type { Json } from "../../dist/values/json-types.js";
import { machine } from "../../dist/define/machine.js";
import { type } from "../../dist/define/schema.js";
import { signal } from "../../dist/define/signal.js";
import { type Equal, law } from "./support/law.js";

const order = machine({
  name: "order",
  signals: {
    approved: signal<{ by: string }>(),
    cancelled: signal(),
    perhaps: signal<number | null>(),
    due: signal<{ at: Date; items: readonly { note?: string }[] }>(),
    hinted: signal<{ hint?: string }>(),
    anything: signal<Json>(),
  },
  state: type<{ n: number }>(),
  steps: { start: ({ done }) => done("shipped") },
});
const resize = job({ name: "resize", run: async (_ctx, input: { path: string }) => input.path });

// The shape of the client's methods, and of `serve`.
interface Client {
  start<Target extends StartTarget>(
    target: Target,
    input: InputOf<DefinitionOf<Target>>,
  ): { runId: RunId<DefinitionOf<Target>> };
  signal<D extends AnyDefinition, Name extends SignalNameOf<D>>(
    runId: RunId<D>,
    name: Name,
    ...payloadAndOptions: SignalArguments<D, Name>
  ): void;
  result<D extends AnyDefinition>(runId: RunId<D>): OutputOf<D>;
  serve(definitions: readonly AnyDefinition[]): void;
}
declare const client: Client;

// ---- what compiles, and the types that come of it

client.serve([order, resize]);
const { runId } = client.start(order, { n: 1 });
const text: string = runId;
law<Equal<ReturnType<typeof client.result<typeof order>>, "shipped">>();
client.signal(runId, "approved", { by: "ann" });
client.signal(runId, "cancelled", {});
client.signal(runId, "perhaps", 1);
client.signal(runId, "approved", { by: "ann" }, { dedupKey: "a" });
client.signal(runId, "cancelled");
client.signal(runId, "cancelled", undefined, { dedupKey: "a" });
client.signal(runId, "due", { at: new Date(), items: [{ note: "soon" }] });
client.signal(runId, "due", { at: "2030-01-31T12:00:00.000Z", items: [] });
client.signal(runId, "hinted");
client.signal(runId, "hinted", { hint: "left" });
client.signal(runId, "anything");
client.signal(runId, "anything", [1]);
const result = client.result(runId);
law<Equal<typeof result, "shipped">>();
const byName = client.result(client.start("order", { n: 1 }).runId);
law<Equal<typeof byName, unknown>>();

client.signal(client.start(resize, { path: "a" }).runId, "anything", { at: "all" });

const untyped = client.result(text);
law<Equal<typeof untyped, unknown>>();
client.signal(text, "anything", { at: "all" });
client.signal("17", "anything", { at: "all" });
client.signal("17", "anything");
client.signal("17", "anything", "text", { dedupKey: "a" });
client.signal(client.start("order", {}).runId, "anything", 1);

// ---- what does not

// @ts-expect-error TS2345 at "aproved"
client.signal(runId, "aproved", { by: "ann" });

// @ts-expect-error TS2353 at who
client.signal(runId, "approved", { who: "ann" });

// @ts-expect-error TS2322 at at
client.signal(runId, "cancelled", { at: 1 });

// @ts-expect-error TS2345 at null
client.signal(runId, "perhaps", null);

// @ts-expect-error TS2345 at null
client.signal(runId, "anything", null);

// @ts-expect-error TS2345 at null
client.signal("17", "anything", null);

// @ts-expect-error TS2554 at signal(runId, "approved")
client.signal(runId, "approved");

// @ts-expect-error TS2345 at undefined
client.signal(runId, "approved", undefined, { dedupKey: "a" });

// @ts-expect-error TS2322 at at:
client.signal(runId, "due", { at: 7, items: [] });

// @ts-expect-error TS2353 at dedup:
client.signal(runId, "approved", { by: "ann" }, { dedup: "a" });

// @ts-expect-error TS2353 at m:
client.start(order, { m: 1 });

// @ts-expect-error TS2322 at {
client.serve([{ name: "order" }]);
