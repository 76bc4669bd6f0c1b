/** Reads PostgreSQL's protocol out of a stream, message by message, for the proxies of tests. */

/** One message of the protocol, or (the first of a client) without a type. */
interface Message {
  readonly type: string;
  readonly bytes: Buffer;
}

/** Splits a stream into messages. */
export class Messages {
  #buffered: Buffer = Buffer.alloc(0);
  #isFirst: boolean;

  constructor({ fromClient }: { fromClient: boolean }) {
    this.#isFirst = fromClient;
  }

  take(chunk: Buffer): Message[] {
    this.#buffered = Buffer.concat([this.#buffered, chunk]);
    const messages: Message[] = [];
    for (;;) {
      const lengthAt = this.#isFirst ? 0 : 1;
      if (this.#buffered.length < lengthAt + 4) return messages;
      const end = lengthAt + this.#buffered.readInt32BE(lengthAt);
      if (this.#buffered.length < end) return messages;
      const bytes = this.#buffered.subarray(0, end);
      messages.push({ type: this.#isFirst ? "" : String.fromCharCode(bytes[0]!), bytes });
      this.#buffered = this.#buffered.subarray(end);
      this.#isFirst = false;
    }
  }
}
