/** Waits for a call that the database may never answer; its failure changes nothing any more. */
export async function atMost(call: Promise<unknown>, longestMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([
    call.catch(() => {}),
    new Promise((resolve) => (timer = setTimeout(resolve, longestMs))),
  ]);
  clearTimeout(timer);
}
