/**
 * CPU profiles of a Node.js process, in the format of Chrome's developer tools, without start-up.
 * Also reduces a profile to the functions with the most self time. Used by the worker process for
 * its drain and by the client for its starts.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import inspector from "node:inspector/promises";

const samplingMicroseconds = 500;

/** Begins to record; the function it answers with ends that and writes the file. */
export async function recordCpuProfile(path: string): Promise<() => Promise<void>> {
  const session = new inspector.Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.setSamplingInterval", { interval: samplingMicroseconds });
  await session.post("Profiler.start");
  return async () => {
    const { profile } = await session.post("Profiler.stop");
    session.disconnect();
    writeFileSync(path, JSON.stringify(profile));
  };
}

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: {
      readonly functionName: string;
      readonly url: string;
      readonly lineNumber: number;
    };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** A table of the functions with the most self time, as shares of the recorded time. */
export function topFunctions(path: string, howMany: number): string[] {
  const profile: CpuProfile = JSON.parse(readFileSync(path, "utf8"));
  const { nodes, samples, timeDeltas } = profile;
  const names = new Map(nodes.map((node) => [node.id, nameOf(node.callFrame)]));
  const selfMs = new Map<string, number>();
  let totalMs = 0;
  for (const [index, id] of samples.entries()) {
    const ms = (timeDeltas[index] ?? 0) / 1_000;
    const name = names.get(id) ?? "(unknown)";
    selfMs.set(name, (selfMs.get(name) ?? 0) + ms);
    totalMs += ms;
  }
  const top = [...selfMs].toSorted(([, one], [, other]) => other - one).slice(0, howMany);
  return [
    `self time by function, ${basename(path)}, ${Math.round(totalMs)} ms:`,
    ...top.map(([name, ms]) => {
      const share = ((100 * ms) / totalMs).toFixed(1).padStart(6);
      return `${ms.toFixed(0).padStart(8)} ms ${share} %  ${name}`;
    }),
  ];
}

function nameOf({ functionName, url, lineNumber }: CpuProfile["nodes"][number]["callFrame"]): string {
  const name = functionName === "" ? "(anonymous)" : functionName;
  if (url === "") return name;
  const file = url.startsWith("node:") ? url : url.split("/").slice(-2).join("/");
  return `${name}  ${file}:${lineNumber + 1}`;
}
