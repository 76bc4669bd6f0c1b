/** JSON as colored words: cuts the text of a value into tokens. Pure; `parts/json.tsx` shows them. */

export interface JsonToken {
  readonly kind: "key" | "text" | "number" | "word" | "plain";
  readonly text: string;
}

const pattern = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

export function tokenize(text: string): JsonToken[] {
  const tokens: JsonToken[] = [];
  let end = 0;
  const plain = (until: number): void => {
    if (until > end) tokens.push({ kind: "plain", text: text.slice(end, until) });
  };
  for (const match of text.matchAll(pattern)) {
    const [all, quoted, colon] = match;
    plain(match.index);
    end = match.index + all.length;
    if (quoted === undefined) tokens.push({ kind: /^[tfn]/.test(all) ? "word" : "number", text: all });
    else if (colon === undefined) tokens.push({ kind: "text", text: quoted });
    else tokens.push({ kind: "key", text: quoted }, { kind: "plain", text: colon });
  }
  plain(text.length);
  return tokens;
}

/** In one line, cut to this many characters. */
export function preview(value: unknown, length = 80): string {
  const text = JSON.stringify(value) ?? "";
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}
