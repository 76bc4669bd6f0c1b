/** The doctor: everything that is wrong with the database and the setup, and how to fix it. */

import type { JSX } from "preact";
import { call } from "../api/client.js";
import { usePolled } from "../api/resource.js";
import type { Finding } from "../api/types.js";
import { plural } from "../format/number.js";
import { icons } from "../parts/icons.js";
import { Await, Page } from "../parts/page.js";

const freshMs = 60_000;

const looks = {
  wrong: ["failed", "Wrong"],
  note: ["note", "Note"],
  ok: ["completed", "Fine"],
} as const;
const levels = ["wrong", "note", "ok"] as const;

export function DoctorPage(): JSX.Element {
  const loaded = usePolled(
    "doctor",
    (signal) => call<{ findings: readonly Finding[] }>("v1/doctor", { signal }),
    () => freshMs,
  );
  return (
    <Page
      title="Doctor"
      actions={
        <button type="button" onClick={loaded.reload}>
          Check again
        </button>
      }
    >
      <Await loaded={loaded} lines={8}>
        {({ findings }) => {
          const wrong = findings.filter(({ level }) => level === "wrong").length;
          return (
            <>
              <section class={`why is-${wrong > 0 ? "failed" : "completed"}`} aria-label="Diagnosis">
                <p class="headline">
                  {wrong > 0
                    ? `${plural(wrong, "thing")} ${wrong === 1 ? "is" : "are"} wrong. Each says how to fix it.`
                    : "All is well."}
                </p>
                <p class="muted">
                  The same in a terminal: <code>npx pawl doctor</code>
                </p>
              </section>
              <section class="panel flush" aria-label="Findings">
                <ul class="findings">
                  {findings
                    .toSorted((a, b) => levels.indexOf(a.level) - levels.indexOf(b.level))
                    .map(({ check, level, text, fix }, index) => (
                      <li key={`${index} ${check}`} class={`is-${looks[level][0]}`}>
                        {icons[looks[level][0]]}
                        <div>
                          <p>
                            <strong>{check}</strong> <span class="unseen">{looks[level][1]}:</span>
                            <span class="finding-text">{text}</span>
                          </p>
                          {fix !== null && (
                            <p class="fix">
                              <span class="muted">Fix:</span> {fix}
                            </p>
                          )}
                        </div>
                      </li>
                    ))}
                </ul>
              </section>
            </>
          );
        }}
      </Await>
    </Page>
  );
}
