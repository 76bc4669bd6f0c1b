/**
 * A tiny shell process that outlives a supervisor killed with -9. It reads the process id of the
 * postmaster from a pipe that the supervisor holds; When the pipe closes without a farewell, it
 * ends that postmaster and removes the runtime directory. On a system without a shell, the next
 * start cleans up instead.
 */
import { spawn, type ChildProcess } from "node:child_process";

// $1: the runtime directory; $2: the first signal. A line is the current process id, or "none", or
// "farewell".
const script = `
pid=none
while read -r line; do
  [ "$line" = farewell ] && exit 0
  pid=$line
done
end() {
  kill -s "$1" "$pid" 2>/dev/null || return
  tries=0
  while [ $tries -lt 20 ] && kill -0 "$pid" 2>/dev/null; do sleep 0.1; tries=$((tries + 1)); done
}
if [ "$pid" != none ]; then end "$2"; end QUIT; end KILL; fi
rm -rf "$1" || { sleep 2; rm -rf "$1"; } # a program that was still running may have added a file
`;

export class Watcher {
  readonly #runtimeDirectory: string;
  readonly #firstSignal: "INT" | "QUIT";
  #shell: ChildProcess | undefined;
  #pid: number | undefined;

  constructor(runtimeDirectory: string, firstSignal: "INT" | "QUIT") {
    this.#runtimeDirectory = runtimeDirectory;
    this.#firstSignal = firstSignal;
    this.#launch();
  }

  /** Undefined: no server is running at present. */
  watch(pid: number | undefined): void {
    this.#pid = pid;
    this.#tell(pid === undefined ? "none" : String(pid));
  }

  dismiss(): void {
    this.#tell("farewell");
    this.#shell?.removeAllListeners("exit");
    this.#shell = undefined;
  }

  #launch(): void {
    const startedAt = Date.now();
    const shell = spawn("/bin/sh", ["-c", script, "sh", this.#runtimeDirectory, this.#firstSignal], {
      cwd: "/",
      env: { PATH: "/usr/bin:/bin" },
      stdio: ["pipe", "ignore", "ignore"],
      detached: true,
    });
    this.#shell = shell;
    shell.on("error", () => {}); // no shell on this system
    shell.stdin.on("error", () => {}); // it ended; "exit" follows
    shell.once("exit", () => {
      if (Date.now() - startedAt > 1000) this.#launch(); // somebody killed it, and it had been working
    });
    if (this.#pid !== undefined) this.watch(this.#pid);
  }

  #tell(line: string): void {
    this.#shell?.stdin?.write(`${line}\n`);
  }
}
