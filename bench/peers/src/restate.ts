/**
 * Restate: its own server, with its default configuration (24 partitions, its log written to disk
 * before it is acknowledged), and the services in this process, over HTTP/2, as its documentation
 * deploys them. It pushes work, so workflows are calls through its ingress, 100 in flight. It
 * suspends nothing that waits for less than a minute, as it comes.
 */

import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import * as restate from "@restatedev/restate-sdk";
import * as clients from "@restatedev/restate-sdk-clients";
import {
  inParallel,
  input,
  oneByOne,
  recorded,
  stepsPerWorkflow,
  Tally,
  Timers,
  WakeUps,
} from "./measuring.ts";
import { contend, type Order } from "./program.ts";

type Input = typeof input;

let tally = new Tally();
let timers: Timers;
const wakeUps = new WakeUps();
let awakeableId = "";

const bench = restate.service({
  name: "bench",
  handlers: {
    tenSteps: async (ctx: restate.Context, given: Input) => {
      tally.begin();
      let visited = given.visited;
      for (let index = 0; index < stepsPerWorkflow; index++) {
        visited = await ctx.run(`visit-${index}`, () => visited + 1);
      }
      tally.end();
      return { visited };
    },
    oneStep: async (ctx: restate.Context, given: Input) => ({
      visited: await ctx.run("visit", () => given.visited + 1),
    }),
    sleep: async (ctx: restate.Context, dueMs: number) => {
      await ctx.sleep(Math.max(0, dueMs - Date.now()));
      timers.fired(dueMs);
    },
    wait: async (ctx: restate.Context) => {
      const { id, promise } = ctx.awakeable<{ visited: number }>();
      awakeableId = id;
      wakeUps.waiting();
      await promise;
      wakeUps.wokenUp();
    },
  },
});

async function open({ serviceUrl }: Order) {
  const [ingressUrl, adminUrl] = serviceUrl.split(" ");
  const logger = (): void => {};
  const server = createServer(restate.createEndpointHandler({ services: [bench], logger }));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const uri = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const registered = await fetch(`${adminUrl}/deployments`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ uri }),
  });
  if (!registered.ok) throw new Error(`not registered: ${await registered.text()}`);
  const ingress = clients.connect({ url: ingressUrl! });
  return {
    ingress,
    call: ingress.serviceClient<typeof bench>({ name: "bench" }),
    send: ingress.serviceSendClient<typeof bench>({ name: "bench" }),
  };
}

contend({
  async workflow_steps(order) {
    const { call } = await open(order);
    await inParallel(order.warmUp, order.concurrency, () => Promise.resolve(call.tenSteps(input)));
    tally = new Tally();
    let results = 0;
    await inParallel(order.count, order.concurrency, async () => {
      const { visited } = await call.tenSteps(input);
      if (visited === stepsPerWorkflow) results++;
    });
    return recorded(
      tally,
      order.count,
      stepsPerWorkflow,
      () => tally.firstMs,
      async () => results,
    );
  },

  async result_latency(order) {
    const { call } = await open(order);
    return oneByOne(order, async () => {
      const { visited } = await call.oneStep(input);
      if (visited !== 1) throw new Error("a wrong result");
    });
  },

  async timer_lateness(order) {
    timers = new Timers(order);
    const { send } = await open(order);
    return timers.measure((due) => Promise.resolve(send.sleep(due.getTime())));
  },

  async signal_wakeup(order) {
    const { ingress, send } = await open(order);
    return wakeUps.measure(
      order,
      () => Promise.resolve(send.wait()),
      () => ingress.resolveAwakeable(awakeableId, { visited: 1 }),
    );
  },
});
