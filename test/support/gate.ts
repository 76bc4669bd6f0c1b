/** A step that waits until the test lets it go. */
export function gate() {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => (open = resolve));
  let entered = 0;
  return {
    open,
    pass: async () => {
      entered++;
      await opened;
    },
    entered: () => entered,
  };
}
