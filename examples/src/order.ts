/**
 * The machine of the demo: an order that is reserved, charged, packed and shipped. Every step asks
 * the outside world for something and passes on what it got. The key of a request is made of the
 * run and the step, so it is the same when a step is executed again: that is what makes the request
 * idempotent.
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
      const reservation = await ask(ctx, `${ctx.runId}/reserve`);
      return ctx.next("charge", { ...ctx.state, reservation });
    },
    charge: async (ctx) => {
      const payment = await ask(ctx, `${ctx.runId}/charge`);
      return ctx.next("pack", { ...ctx.state, payment });
    },
    pack: async (ctx) => {
      const parcel = await ask(ctx, `${ctx.runId}/pack`);
      return ctx.next("ship", { ...ctx.state, parcel });
    },
    ship: async (ctx) => {
      const tracking = await ask(ctx, `${ctx.runId}/ship`);
      return ctx.done({ item: ctx.state.item, payment: ctx.state.payment, tracking });
    },
  },
});
