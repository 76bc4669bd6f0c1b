/**
 * The address of the page as a signal, and moving to another one. Filters are part of the address:
 * a link shows somebody else the same list.
 */

import { computed, signal } from "@preact/signals";
import { base } from "./client.js";

const address = signal(location.href);

/** The path below the dashboard's own, as the address has it, without a slash at its end. */
export const path = computed(() => {
  const { pathname } = new URL(address.value);
  return pathname.slice(base.length).replace(/\/+$/, "");
});
export const query = computed(() => new URL(address.value).searchParams);

/** The address of a page, for links. */
export function pageAt(to: string, given: Readonly<Record<string, string | undefined>> = {}): string {
  const pairs = Object.entries(given).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, value]],
  );
  const search = new URLSearchParams(pairs).toString();
  return base + to + (search === "" ? "" : `?${search}`);
}

export function goTo(href: string, { replace = false } = {}): void {
  const target = new URL(href, location.href);
  if (target.href === address.value) return;
  if (replace) history.replaceState(null, "", target);
  else history.pushState(null, "", target);
  const isOtherPage = target.pathname !== new URL(address.value).pathname;
  address.value = target.href;
  if (!isOtherPage) return;
  scrollTo(0, 0);
  // A screen reader reads the new page from its heading on.
  requestAnimationFrame(() => document.querySelector<HTMLElement>("main h1")?.focus());
}

/** Follows links within the dashboard without loading the page again. Call it once. */
export function followLinks(): void {
  addEventListener("popstate", () => (address.value = location.href));
  addEventListener("click", (event) => {
    const isPlain =
      event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (
      !isPlain ||
      event.defaultPrevented ||
      link === null ||
      link.target !== "" ||
      link.hasAttribute("download")
    )
      return;
    const target = new URL(link.href);
    if (target.origin !== location.origin || !target.pathname.startsWith(base)) return;
    if (/^(v1|metrics|healthz|readyz)(\/|$)/.test(target.pathname.slice(base.length))) return;
    event.preventDefault();
    goTo(target.href);
  });
}
