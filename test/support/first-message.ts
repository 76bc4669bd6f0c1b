/**
 * The first message of a program that a test has started. Rejects if the program ends before: a test
 * that waits for a dead program would hang, and at the top of a file no timeout would end it.
 */

import type { ChildProcess } from "node:child_process";

export function firstMessage<T>(program: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    program.once("message", (message) => resolve(message as T));
    program.once("exit", (code, signal) =>
      reject(new Error(`${program.spawnargs.join(" ")} ended with ${code ?? signal} before it was ready`)),
    );
  });
}
