/** Commands of a shell, as they are typed. Pure. */

/** A word of a shell command. */
export function shellWord(text: string): string {
  return /^[\w./:@=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** `npx pawl …` with these words. */
export const cli = (...words: readonly string[]): string => ["npx pawl", ...words.map(shellWord)].join(" ");
