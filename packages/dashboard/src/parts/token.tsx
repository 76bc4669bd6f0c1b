/** Asks for a token when the server wants one, or to sign in to the app around the dashboard. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { isAppAsked, setToken, token, tokenWanted } from "../api/client.js";
import { Field } from "./dialog.js";
import { Mark } from "./icons.js";

export function TokenPage(): JSX.Element {
  return isAppAsked.value ? <SignIn /> : <AskToken />;
}

function SignIn(): JSX.Element {
  return (
    <main class="token-page">
      <div class="panel token">
        <Mark />
        <h1 tabIndex={-1}>Sign in first</h1>
        <p role="alert">{tokenWanted.value}</p>
        <div class="buttons">
          <button type="button" class="primary" onClick={() => location.reload()}>
            Try again
          </button>
        </div>
      </div>
    </main>
  );
}

function AskToken(): JSX.Element {
  const [given, setGiven] = useState("");
  return (
    <main class="token-page">
      <form
        class="panel token"
        onSubmit={(event) => {
          event.preventDefault();
          if (given.trim() !== "") setToken(given.trim());
        }}
      >
        <Mark />
        <h1 tabIndex={-1}>This server wants a token</h1>
        {token.value !== null && (
          <p class="refused" role="alert">
            {tokenWanted.value}
          </p>
        )}
        <Field
          label="Bearer token"
          hint="This tab keeps it until you close it. It needs the scope read; to signal or cancel runs, write."
        >
          <input
            type="password"
            name="token"
            autocomplete="off"
            spellcheck={false}
            autofocus
            value={given}
            onInput={(event) => setGiven(event.currentTarget.value)}
          />
        </Field>
        <div class="buttons">
          <button type="submit" class="primary">
            Open the dashboard
          </button>
        </div>
        <p class="muted">
          Make one with <code>npx pawl token create</code> and give it to the server in{" "}
          <code>PAWL_TOKENS</code>.
        </p>
      </form>
    </main>
  );
}
