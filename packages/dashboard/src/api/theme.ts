/** Light, dark, or as the system has it. The choice is kept in this browser. */

import { effect, signal } from "@preact/signals";

const themes = ["system", "light", "dark"] as const;
type Theme = (typeof themes)[number];

const key = "pawl.theme";
const stored = localStorage.getItem(key);

export const theme = signal<Theme>(themes.find((one) => one === stored) ?? "system");

effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
  if (theme.value === "system") localStorage.removeItem(key);
  else localStorage.setItem(key, theme.value);
});

export function nextTheme(): void {
  theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length] ?? "system";
}
