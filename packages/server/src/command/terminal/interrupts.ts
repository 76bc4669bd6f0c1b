/** Ctrl-C and SIGTERM: the first stops gracefully, the second stops at once. */

const codes = { SIGINT: 130, SIGTERM: 143 } as const;

/** Resolves at the first of them. At the second it calls `atOnce` and ends the process. */
export function waitForInterrupt(atOnce: () => void = () => {}): Promise<void> {
  return new Promise((resolve) => {
    let isAsked = false;
    for (const [signal, code] of Object.entries(codes)) {
      process.on(signal, () => {
        if (isAsked) {
          atOnce();
          process.exit(code);
        }
        isAsked = true;
        resolve();
      });
    }
  });
}
