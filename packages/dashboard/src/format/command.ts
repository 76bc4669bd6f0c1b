/** Commands of a shell, as they are typed. Pure. */

/** Escapes of a terminal, and marks that turn the direction of a text: they would hide what is pasted. */
const invisible = /[^\P{C}\t\n]|[\u2028\u2029]/gu;

/** A word of a shell command. */
export function shellWord(text: string): string {
  if (/^[\w./:@=-]+$/.test(text)) return text;
  if (text.search(invisible) === -1) return `'${text.replaceAll("'", String.raw`'\''`)}'`;
  const escaped = text.replaceAll(/[\\']/g, String.raw`\$&`).replaceAll(invisible, escape);
  return `$'${escaped}'`;
}

function escape(character: string): string {
  const hex = (character.codePointAt(0) ?? 0).toString(16);
  return hex.length <= 4 ? String.raw`\u` + hex.padStart(4, "0") : String.raw`\U` + hex.padStart(8, "0");
}

/** `npx pawl …` with these words. */
export const cli = (...words: readonly string[]): string => ["npx pawl", ...words.map(shellWord)].join(" ");
