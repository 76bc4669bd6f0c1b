/** Loaded before a worker process (`--import`): its wall clock is `CLOCK_SHIFT_MS` away from that of the machine. */

const shiftMs = Number(process.env["CLOCK_SHIFT_MS"]);
const Real = Date;

class Shifted extends Real {
  constructor(...given: [] | [number]) {
    if (given.length === 0) super(Real.now() + shiftMs);
    else super(...given);
  }

  static override now(): number {
    return Real.now() + shiftMs;
  }
}

globalThis.Date = Shifted as DateConstructor;
