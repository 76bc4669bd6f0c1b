/**
 * The machine of the demo: an order is reserved, charged, packed and shipped. Every step sends a
 * request to the outside world and passes on the answer. The key of a request consists of the run
 * and the step. It stays the same when the step executes again, so the request is idempotent.
 */

import { machine, type } from "pawl";
import { ask } from "./outside.js";

interface Order {
  item: string;
  euros: number;
  reservation?: string;
  payment?: string;
  parcel?: string;
}

export const order = machine({
  name: "order",
  state: type<Order>(),
  initial: "reserve",
  steps: {
    reserve: async (ctx) => {
      const reservation = await ask(ctx, `${ctx.originRunId}/reserve`);
      return ctx.next("charge", { ...ctx.state, reservation });
    },
    charge: async (ctx) => {
      const payment = await ask(ctx, `${ctx.originRunId}/charge`);
      return ctx.next("pack", { ...ctx.state, payment });
    },
    pack: async (ctx) => {
      const parcel = await ask(ctx, `${ctx.originRunId}/pack`);
      return ctx.next("ship", { ...ctx.state, parcel });
    },
    ship: async (ctx) => {
      const tracking = await ask(ctx, `${ctx.originRunId}/ship`);
      return ctx.done({ item: ctx.state.item, payment: ctx.state.payment, tracking });
    },
  },
});
