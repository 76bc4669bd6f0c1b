/** An error as it was recorded: name, code, message, stack and causes. */

import type { JSX } from "preact";
import type { ErrorRecord } from "../api/types.js";
import { CopyButton } from "../parts/copy.js";
import { Json } from "../parts/json.js";

/** Causes of causes are shown this deep. */
const maxDepth = 8;

export function ErrorView({ error, depth = 0 }: { error: ErrorRecord; depth?: number }): JSX.Element {
  const { name, message, code, step, cause } = error;
  const stack = (error as { readonly stack?: unknown }).stack;
  return (
    <div class="error-view">
      <p class="error-title">
        <strong>{name}</strong>
        {code !== undefined && code !== name && <code>{code}</code>}
        {step !== undefined && <span class="muted">in step {step}</span>}
      </p>
      <p class="error-message">{message}</p>
      {typeof stack === "string" && (
        <div class="code">
          <pre tabIndex={0} aria-label="Stack">
            {stack}
          </pre>
          <CopyButton text={stack} />
        </div>
      )}
      {isError(cause) && depth < maxDepth ? (
        <div class="cause">
          <p class="muted">Caused by</p>
          <ErrorView error={cause} depth={depth + 1} />
        </div>
      ) : (
        cause !== undefined && cause !== null && <Json value={cause} label="Cause" />
      )}
    </div>
  );
}

function isError(value: unknown): value is ErrorRecord {
  return typeof value === "object" && value !== null && "message" in value && "name" in value;
}
