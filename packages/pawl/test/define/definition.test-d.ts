/**
 * Compile-time laws of what the client reads off definitions: the id of a run knows the signals and the output of
 * its definition, and a plain string is as good as an id, untyped.
 */

import type {
  AnyDefinition,
  DefinitionOf,
  InputOf,
  OutputOf,
  RunId,
  SignalNameOf,
  SignalPayloadOf,
  StartTarget,
} from "../../dist/define/definition.js";
import { job } from "../../dist/define/job.js";
import { machine } from "../../dist/define/machine.js";
import { type } from "../../dist/define/schema.js";
import { signal } from "../../dist/define/signal.js";
import { type Equal, law } from "./support/law.js";

const order = machine({
  name: "order",
  signals: { approved: signal<{ by: string }>(), cancelled: signal(), perhaps: signal<number | null>() },
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
    payload: SignalPayloadOf<D, Name>,
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
const result = client.result(runId);
law<Equal<typeof result, "shipped">>();
const byName = client.result(client.start("order", { n: 1 }).runId);
law<Equal<typeof byName, unknown>>();

client.signal(client.start(resize, { path: "a" }).runId, "anything", { at: "all" });

const untyped = client.result(text);
law<Equal<typeof untyped, unknown>>();
client.signal(text, "anything", { at: "all" });
client.signal("17", "anything", { at: "all" });
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

// @ts-expect-error TS2353 at m:
client.start(order, { m: 1 });

// @ts-expect-error TS2322 at {
client.serve([{ name: "order" }]);
