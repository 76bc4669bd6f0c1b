/**
 * What Pawl needs of a logger: the shape that pino, bunyan-likes and a few lines around `console` have in common.
 * Accepted by `connect` and `serve`, and given to steps and jobs as `ctx.log`.
 */

/** One level: a message, or an object with details and then a message. */
export interface LogMethod {
  (details: object, message?: string): void;
  (message: string): void;
}

export interface Logger {
  readonly debug: LogMethod;
  readonly info: LogMethod;
  readonly warn: LogMethod;
  readonly error: LogMethod;
}
