/**
 * Whether the database answers. Anybody may call `/readyz` as often as they like, so this sends one
 * ping at a time, on a connection that no other call uses, and caches the answer for a second.
 */

const cacheMs = 1_000;

export class Readiness {
  readonly #ping: () => Promise<void>;
  #isReady = false;
  #untilMs = Number.NEGATIVE_INFINITY;
  #pinging: Promise<boolean> | undefined;

  constructor(ping: () => Promise<void>) {
    this.#ping = ping;
  }

  /** The cached answer at once, or a promise that all callers share until the ping returns. */
  isReady(): boolean | Promise<boolean> {
    if (performance.now() < this.#untilMs) return this.#isReady;
    this.#pinging ??= this.#refresh().finally(() => (this.#pinging = undefined));
    return this.#pinging;
  }

  async #refresh(): Promise<boolean> {
    this.#isReady = await this.#ping().then(
      () => true,
      () => false,
    );
    this.#untilMs = performance.now() + cacheMs;
    return this.#isReady;
  }
}
