/** A button that changes something: there is none for people whose token lacks its scope. */

import type { ButtonHTMLAttributes, JSX } from "preact";
import { may, type Scope } from "../api/me.js";

export function Button({
  scope,
  ...props
}: ButtonHTMLAttributes & { readonly scope: Scope }): JSX.Element | null {
  return may(scope) ? <button type="button" {...props} /> : null;
}
