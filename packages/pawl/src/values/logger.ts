/**
 * The logger that Pawl writes to. pino and bunyan have this shape; `console` needs a few lines.
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
