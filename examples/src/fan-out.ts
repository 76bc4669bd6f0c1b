/**
 * Fan-out: transcribes the chapters of a book, three at a time. Each chapter is its own run, on any
 * worker with a free slot. A failed chapter does not fail the book. While the children work, the
 * parent uses no worker.
 */

import { ChildFailed, connect, job, NonRetryable, serve, workflow } from "pawl";

const transcribe = job({
  name: "transcribe",
  queue: "audio",
  run: async (_ctx, input: { file: string }) => {
    if (!input.file.endsWith(".mp3")) throw new NonRetryable(`${input.file} is no audio`);
    return { words: await countWords(input.file) };
  },
});

const book = workflow({
  name: "book",
  run: async ({ step }, input: { chapters: string[]; atOnce: number }) => {
    let words = 0;
    const problems: string[] = [];
    // The lanes share one iterator: each takes the next chapter when it has finished its last.
    const chapters = input.chapters.entries();
    const lane = async (): Promise<void> => {
      for (const [index, file] of chapters) {
        try {
          const transcript = await step.invoke(`chapter-${index}`, transcribe, { file });
          words += transcript.words;
        } catch (error) {
          if (!(error instanceof ChildFailed)) throw error;
          problems.push(error.error?.message ?? error.message);
        }
      }
    };
    await Promise.all(Array.from({ length: input.atOnce }, lane));
    return { words, problems };
  },
});

// The model that listens, and how many listen at once.
let listening = 0;
let most = 0;

async function countWords(file: string): Promise<number> {
  most = Math.max(most, ++listening);
  await new Promise((resolve) => setTimeout(resolve, 20));
  listening--;
  return file.length * 100;
}

const worker = serve([book, transcribe]);
const pawl = connect();
const chapters = ["intro.mp3", "one.mp3", "two.mp3", "cover.jpg", "three.mp3", "four.mp3", "outro.mp3"];
const { runId } = await pawl.start(book, { chapters, atOnce: 3 });
console.log(await pawl.result(runId));
console.log("at most 3 at once:", most <= 3);
await worker.stop();
await pawl.close();
