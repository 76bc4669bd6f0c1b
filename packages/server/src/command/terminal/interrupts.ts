/** Ctrl-C and SIGTERM: the first asks for a graceful end, the second ends at once. */

const codes = { SIGINT: 130, SIGTERM: 143 } as const;

/** Resolves at the first of them. At the second `atOnce` is called and the process ends. */
export function untilInterrupted(atOnce: () => void = () => {}): Promise<void> {
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
