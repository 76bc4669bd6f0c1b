/**
 * Converts text to bytes and back. It runs in browsers too, so it uses no `Buffer`. Called wherever
 * a limit counts bytes, or bytes travel as text.
 */

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** The UTF-8 of a text. */
export function toBytes(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}

/** How long a text is in UTF-8. */
export function byteLength(text: string): number {
  return encoder.encode(text).length;
}

/**
 * Whether a text is longer than this in UTF-8. A code unit takes at most three bytes, so short
 * texts are not measured.
 */
export function isLongerThan(text: string, bytes: number): boolean {
  return text.length * 3 > bytes && byteLength(text) > bytes;
}

/** Bytes as base64. */
export function toBase64(bytes: Uint8Array): string {
  let units = "";
  for (const byte of bytes) units += String.fromCharCode(byte);
  return btoa(units);
}

/** The bytes of a base64 text, with or without its padding; undefined if it is not base64. */
export function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text)) return undefined;
  try {
    return Uint8Array.from(atob(text), (unit) => unit.charCodeAt(0));
  } catch {
    return undefined;
  }
}

/** A text as base64 that is safe in a URL. */
export function toBase64Url(text: string): string {
  return toBase64(toBytes(text)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Decodes the result of `toBase64Url`; throws on anything else. */
export function fromBase64Url(encoded: string): string {
  const units = atob(encoded.replaceAll("-", "+").replaceAll("_", "/"));
  return decoder.decode(Uint8Array.from(units, (unit) => unit.charCodeAt(0)));
}
