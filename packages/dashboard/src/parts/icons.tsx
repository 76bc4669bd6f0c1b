/** The drawings: one shape for each status, so that color is never the only sign; and a few more. */

import type { ComponentChildren, JSX } from "preact";

function Icon({ children }: { children: ComponentChildren }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      {children}
    </svg>
  );
}

const line = {
  fill: "none",
  stroke: "currentColor",
  "stroke-width": "1.7",
  "stroke-linecap": "round",
  "stroke-linejoin": "round",
} as const;

export const icons = {
  completed: (
    <Icon>
      <circle cx="8" cy="8" r="7" fill="currentColor" />
      <path d="M4.8 8.3l2.2 2.2 4.2-4.8" {...line} class="icon-cut" />
    </Icon>
  ),
  failed: (
    <Icon>
      <path
        d="M8 1.2l7.2 13H.8z"
        fill="currentColor"
        stroke="currentColor"
        stroke-width="1"
        stroke-linejoin="round"
      />
      <path d="M8 6v4M8 12.2v.1" {...line} class="icon-cut" />
    </Icon>
  ),
  cancelled: (
    <Icon>
      <circle cx="8" cy="8" r="6.2" {...line} />
      <path d="M4 12l8-8" {...line} />
    </Icon>
  ),
  executing: (
    <Icon>
      <circle cx="8" cy="8" r="6.2" {...line} />
      <path d="M6.4 5.2v5.6l4.6-2.8z" fill="currentColor" />
    </Icon>
  ),
  queued: (
    <Icon>
      <circle cx="8" cy="8" r="6.2" {...line} stroke-dasharray="2.4 2.5" />
    </Icon>
  ),
  delayed: (
    <Icon>
      <circle cx="8" cy="8" r="6.2" {...line} />
      <path d="M8 4.6V8l2.4 1.6" {...line} />
    </Icon>
  ),
  waiting: (
    <Icon>
      <path d="M8 1.4L14.6 8 8 14.6 1.4 8z" {...line} />
      <path d="M6.7 6.2v3.6M9.3 6.2v3.6" {...line} />
    </Icon>
  ),
  paused: (
    <Icon>
      <rect x="1.8" y="1.8" width="12.4" height="12.4" rx="3" {...line} />
      <path d="M6.2 5.4v5.2M9.8 5.4v5.2" {...line} />
    </Icon>
  ),
  children: (
    <Icon>
      <circle cx="8" cy="3.4" r="2" {...line} />
      <circle cx="3.6" cy="12.6" r="2" {...line} />
      <circle cx="12.4" cy="12.6" r="2" {...line} />
      <path d="M7 5.2l-2.5 5.4M9 5.2l2.5 5.4" {...line} />
    </Icon>
  ),
  overview: (
    <Icon>
      <path d="M2 13.5h12M3.8 11V7M8 11V3M12.2 11V5.5" {...line} />
    </Icon>
  ),
  runs: (
    <Icon>
      <path d="M2 4h.1M2 8h.1M2 12h.1M5.4 4H14M5.4 8H14M5.4 12H14" {...line} />
    </Icon>
  ),
  definitions: (
    <Icon>
      <path d="M5.4 4L1.6 8l3.8 4M10.6 4l3.8 4-3.8 4" {...line} />
    </Icon>
  ),
  queues: (
    <Icon>
      <rect x="1.6" y="2.4" width="12.8" height="4.4" rx="1.2" {...line} />
      <rect x="1.6" y="9.2" width="12.8" height="4.4" rx="1.2" {...line} />
    </Icon>
  ),
  limits: (
    <Icon>
      <path d="M2 12a6 6 0 1112 0M8 12l2.8-4" {...line} />
    </Icon>
  ),
  actions: (
    <Icon>
      <path d="M3 2.5h7l3 3v8H3zM5.6 7h4.8M5.6 10h4.8" {...line} />
    </Icon>
  ),
  schedules: (
    <Icon>
      <rect x="1.8" y="3" width="12.4" height="11" rx="1.6" {...line} />
      <path d="M1.8 6.6h12.4M5 1.6V4M11 1.6V4" {...line} />
    </Icon>
  ),
  note: (
    <Icon>
      <circle cx="8" cy="8" r="6.2" {...line} />
      <path d="M8 7.4v3.4M8 5v.1" {...line} />
    </Icon>
  ),
  person: (
    <Icon>
      <circle cx="8" cy="5" r="3" {...line} />
      <path d="M2.4 14.2a5.6 5.6 0 0111.2 0" {...line} />
    </Icon>
  ),
  key: (
    <Icon>
      <circle cx="5" cy="11" r="3.2" {...line} />
      <path d="M7.4 8.6L14 2M11.4 4.6l2.2 2.2" {...line} />
    </Icon>
  ),
  workers: (
    <Icon>
      <rect x="1.8" y="2.4" width="12.4" height="8.4" rx="1.4" {...line} />
      <path d="M5 13.8h6M8 10.8v3" {...line} />
    </Icon>
  ),
  doctor: (
    <Icon>
      <path d="M1.4 8.4h3l2-5 3.2 9 2-4h3" {...line} />
    </Icon>
  ),
  copy: (
    <Icon>
      <rect x="5.4" y="5.4" width="8.6" height="8.6" rx="1.6" {...line} />
      <path d="M10.6 3.2V3A1.4 1.4 0 009.2 1.8H3A1.4 1.4 0 001.6 3.2v6A1.4 1.4 0 003 10.6h.2" {...line} />
    </Icon>
  ),
  check: (
    <Icon>
      <path d="M3 8.6l3.2 3.2L13 4.6" {...line} />
    </Icon>
  ),
  sun: (
    <Icon>
      <circle cx="8" cy="8" r="3" {...line} />
      <path d="M8 1v1.4M8 13.6V15M1 8h1.4M13.6 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1" {...line} />
    </Icon>
  ),
  close: (
    <Icon>
      <path d="M4 4l8 8M12 4l-8 8" {...line} />
    </Icon>
  ),
  twist: (
    <Icon>
      <path d="M6 3.5L10.5 8 6 12.5" {...line} />
    </Icon>
  ),
  plus: (
    <Icon>
      <path d="M8 3v10M3 8h10" {...line} />
    </Icon>
  ),
} as const;

/** The name of the product with its mark: a pawl on a ratchet. */
export function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
      <rect width="32" height="32" rx="8" class="mark-ground" />
      <path
        d="M7 23.5h18M7 23.5l4.5-6v6M13 23.5l4.5-6v6M19 23.5l4.5-6v6"
        class="mark-teeth"
        fill="none"
        stroke-width="2.2"
        stroke-linejoin="round"
        stroke-linecap="round"
      />
      <path d="M8 7.5l9.2 8.6" class="mark-arm" stroke-width="3.4" stroke-linecap="round" />
      <circle cx="8.4" cy="7.9" r="2.6" class="mark-pin" />
    </svg>
  );
}
