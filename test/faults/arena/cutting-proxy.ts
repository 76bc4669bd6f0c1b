/**
 * A proxy before a database that reads what passes (PostgreSQL's protocol), and cuts everything at a chosen instant: when the nth
 * write is about to reach the server, or when its reply, which comes after its commit, is about to reach the client, or the reply
 * to a claim that brings a run. To the client's runs that is what a crash of its process is: what has not reached the server
 * never does.
 */

import { Messages } from "../../support/proxies/messages.js";
import { relayTo } from "../../support/proxies/relay.js";

export interface CuttingProxy {
  readonly url: string;
  /** Resolves when everything was cut. */
  readonly cut: Promise<void>;
  /** How many instants have passed. */
  instants(): number;
  close(): void;
}

/** What is written for a run under way: its journal, its suspensions, its end, and all statements of its transactions. */
const writes = [".record(", ".commit(", ".finish(", "begin isolation", "insert into public.", "commit;"];
const claim = ".claim(";

/** Cuts at the nth instant. */
export async function cuttingProxy(target: string, at: number): Promise<CuttingProxy> {
  let instants = 0;
  let isCut = false;
  let tell = (): void => {};
  const cut = new Promise<void>((resolve) => (tell = resolve));
  const cutAll = (): void => {
    isCut = true;
    void relay.close();
    tell();
  };
  /** Whether this is the instant to cut. */
  const passes = (): boolean => {
    if (isCut) return false;
    if (++instants !== at) return true;
    cutAll();
    return false;
  };

  const relay = await relayTo(target, ({ client, database }) => {
    const asked = new Messages({ fromClient: true });
    const answered = new Messages({ fromClient: false });
    /** The statements in flight. */
    const flying: ("write" | "claim" | "other")[] = [];
    let group: Buffer[] = [];
    let kind: (typeof flying)[number] = "other";
    client.on("data", (chunk: Buffer) => {
      for (const { type, bytes } of asked.take(chunk)) {
        group.push(bytes);
        if (type === "P" || type === "B" || type === "Q") {
          const text = bytes.toString("latin1");
          if (writes.some((part) => text.includes(part))) kind = "write";
          else if (text.includes(claim)) kind = "claim";
        }
        const isComplete = type === "" || type === "Q" || type === "S" || type === "X" || type === "p";
        if (!isComplete) continue;
        if (kind === "write" && !passes()) return;
        if (type === "Q" || type === "S") flying.push(kind);
        database.write(Buffer.concat(group));
        group = [];
        kind = "other";
      }
    });
    let reply: Buffer[] = [];
    let rows = 0;
    let isReady = false;
    database.on("data", (chunk: Buffer) => {
      for (const { type, bytes } of answered.take(chunk)) {
        reply.push(bytes);
        if (type === "D") rows++;
        // Before the first ReadyForQuery the two speak about who they are.
        if (isReady && type !== "Z") continue;
        const answer = isReady ? flying.shift() : "other";
        // A claim answers one row more than runs.
        if ((answer === "write" || (answer === "claim" && rows > 1)) && !passes()) return;
        isReady ||= type === "Z";
        client.write(Buffer.concat(reply));
        reply = [];
        rows = 0;
      }
    });
  });
  return { url: relay.url, cut, instants: () => instants, close: () => isCut || cutAll() };
}
