/**
 * The network between the processes of a fault test and their database: a proxy that reads what passes (PostgreSQL's protocol) and
 * can reset connections, swallow everything, delay it, lose answers, and lead elsewhere. It also counts what the database refused
 * because it came from a worker whose claim was gone.
 */

import type { Socket } from "node:net";
import { afterAll } from "vitest";
import { Messages } from "../../support/proxies/messages.js";
import { relayTo } from "../../support/proxies/relay.js";
import type { Chance } from "./seed.js";

export interface Network {
  readonly url: string;
  /** Ends all connections. */
  reset(): void;
  /** From now on no byte passes, in any direction, and connections stay open; or all that waited passes. */
  swallow(on: boolean): void;
  /** From now on everything comes so much later, each way. */
  delay(ms: number): void;
  /** From now on one in so many answers is lost, with its connection: before or after the statement is executed. Infinity: none. */
  loseAnswers(oneIn: number): void;
  /** New connections lead to this server; those that are open are ended. */
  leadTo(url: string): void;
  /** Called whenever the answer to a claim that brings runs has passed. */
  onClaim: (() => void) | null;
  readonly counts: { connections: number; lostAnswers: number; staleWrites: number };
  close(): Promise<void>;
}

export async function makeNetwork(target: string, chance: Chance): Promise<Network> {
  const lanes = new Set<Lane>();
  let isSwallowing = false;
  let delayMs = 0;
  let lostOneIn = Infinity;
  const counts = { connections: 0, lostAnswers: 0, staleWrites: 0 };

  const relay = await relayTo(target, ({ client, database, end }) => {
    counts.connections++;
    const up = new Lane(database);
    const down = new Lane(client);
    for (const lane of [up, down]) {
      lanes.add(lane);
      lane.isHeld = isSwallowing;
      client.once("close", () => lanes.delete(lane));
    }

    const asked = new Messages({ fromClient: true });
    const answered = new Messages({ fromClient: false });
    /** The statements in flight. */
    const flying: { isClaim: boolean; isLost: boolean }[] = [];
    let text = "";
    client.on("data", (chunk: Buffer) => {
      for (const { type, bytes } of asked.take(chunk)) {
        up.send(bytes, delayMs);
        if (type === "P" || type === "Q") text = bytes.toString("latin1");
        if (type !== "S" && type !== "Q") continue;
        const isLost = lostOneIn !== Infinity && chance.below(lostOneIn) === 0;
        flying.push({ isClaim: text.includes(".claim("), isLost });
        text = "";
        // Half of them at once: the statement is on its way, and nobody hears whether it was executed.
        if (isLost && chance.below(2) === 0) {
          counts.lostAnswers++;
          end();
          return;
        }
      }
    });
    let isReady = false;
    let rows = 0;
    database.on("data", (chunk: Buffer) => {
      for (const { type, bytes } of answered.take(chunk)) {
        if (type === "D") {
          rows++;
          counts.staleWrites += bytes.toString("latin1").match(/"verdict": ?"stale"/g)?.length ?? 0;
        }
        const answers = isReady && type === "Z" ? flying.shift() : flying[0];
        // The other half: executed, and the answer never comes.
        if (isReady && answers?.isLost === true) {
          if (type !== "Z") continue;
          counts.lostAnswers++;
          end();
          return;
        }
        down.send(bytes, delayMs);
        if (type !== "Z") continue;
        // A claim answers one row more than runs.
        if (isReady && answers?.isClaim === true && rows > 1) network.onClaim?.();
        isReady = true;
        rows = 0;
      }
    });
  });
  const network: Network = {
    url: relay.url,
    reset: relay.reset,
    swallow: (on) => {
      isSwallowing = on;
      for (const lane of lanes) lane.hold(on);
    },
    delay: (ms) => {
      delayMs = ms;
    },
    loseAnswers: (oneIn) => {
      lostOneIn = oneIn;
    },
    leadTo: relay.leadTo,
    onClaim: null,
    counts,
    close: relay.close,
  };
  afterAll(network.close);
  return network;
}

/** One direction of a connection: what is sent arrives in order, when its time has come and nothing is held. */
class Lane {
  isHeld = false;
  readonly #target: Socket;
  readonly #queue: { bytes: Buffer; dueMs: number }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(target: Socket) {
    this.#target = target;
  }

  send(bytes: Buffer, delayMs: number): void {
    this.#queue.push({ bytes, dueMs: performance.now() + delayMs });
    this.#flush();
  }

  hold(on: boolean): void {
    this.isHeld = on;
    this.#flush();
  }

  #flush(): void {
    clearTimeout(this.#timer);
    while (!this.isHeld && this.#queue.length > 0) {
      const [{ bytes, dueMs }] = this.#queue as [{ bytes: Buffer; dueMs: number }];
      const waitMs = dueMs - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.#flush(), Math.ceil(waitMs));
        return;
      }
      this.#queue.shift();
      if (!this.#target.destroyed) this.#target.write(bytes);
    }
  }
}
