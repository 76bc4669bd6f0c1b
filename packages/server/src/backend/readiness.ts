/**
 * Whether this server can serve: the database answers. Anybody may ask, as often as they like, so one question at a time goes to the
 * database, on a connection that nothing else uses, and its answer holds for a second. Asked by `/readyz`.
 */

const keptMs = 1_000;

export class Readiness {
  readonly #ping: () => Promise<void>;
  #isReady = false;
  #untilMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<boolean> | undefined;

  constructor(ping: () => Promise<void>) {
    this.#ping = ping;
  }

  /** True or false at once, if it is known; a promise for all who ask meanwhile, if not. */
  isReady(): boolean | Promise<boolean> {
    if (performance.now() < this.#untilMs) return this.#isReady;
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  async #ask(): Promise<boolean> {
    this.#isReady = await this.#ping().then(
      () => true,
      () => false,
    );
    this.#untilMs = performance.now() + keptMs;
    return this.#isReady;
  }
}
