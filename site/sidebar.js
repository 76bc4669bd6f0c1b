/**
 * The order of the documentation: the groups of the sidebar and the pages of each, as paths from
 * the root of the repository. A path that ends with a slash means every page of that folder which
 * has no entry of its own, by title. Used by the site, and by `test/docs/site`, which checks that
 * every page of `docs/` has a place.
 */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../", import.meta.url));

/** @type {readonly { text: string, pages: readonly (readonly [path: string, title?: string])[] }[]} */
const groups = [
  {
    text: "Start here",
    pages: [
      ["docs/README.md", "In two minutes"],
      ["docs/quickstart.md"],
      ["docs/choosing.md"],
      ["docs/tutorial.md"],
      ["docs/local-postgres.md"],
    ],
  },
  {
    text: "Guides: definitions",
    pages: [
      ["docs/jobs.md"],
      ["docs/workflows.md"],
      ["docs/machines.md"],
      ["docs/batch-jobs.md"],
      ["docs/steps-and-retries.md"],
      ["docs/events.md"],
      ["docs/signals.md"],
      ["docs/timers.md"],
      ["docs/children.md"],
      ["docs/determinism.md"],
      ["docs/versioning.md"],
      ["docs/testing.md"],
    ],
  },
  {
    text: "Guides: runs",
    pages: [
      ["docs/start-options.md"],
      ["docs/schedules.md"],
      ["docs/transactions.md"],
      ["docs/keys-and-limits.md"],
      ["docs/concurrency-and-fairness.md"],
      ["docs/cancellation.md"],
      ["docs/queues-and-topics.md"],
      ["docs/why.md"],
      ["docs/recovering-failed-runs.md"],
    ],
  },
  { text: "Recipes", pages: [["docs/recipes/README.md", "All recipes"], ["docs/recipes/"]] },
  {
    text: "Frameworks",
    pages: [
      ["docs/frameworks/README.md", "All frameworks"],
      ["docs/frameworks/"],
      ["docs/embedding.md"],
      ["docs/serverless.md"],
    ],
  },
  {
    text: "Operate",
    pages: [
      ["docs/production-checklist.md"],
      ["docs/deploy-docker.md"],
      ["docs/deploy-kubernetes.md"],
      ["docs/deploy-fly.md"],
      ["docs/connections.md"],
      ["docs/sizing.md"],
      ["docs/upgrades.md"],
      ["docs/backup.md"],
      ["docs/operations.md"],
      ["docs/pausing-and-operating.md"],
      ["docs/dashboard.md"],
      ["docs/server.md"],
      ["docs/remote-workers.md"],
      ["docs/observability.md"],
      ["docs/security.md"],
      ["docs/fork.md"],
    ],
  },
  {
    text: "Reference",
    pages: [
      ["docs/configuration.md"],
      ["docs/cli.md"],
      ["docs/rest.md"],
      ["docs/errors.md"],
      ["docs/metrics.md"],
      ["docs/api/README.md", "API"],
      ["docs/api/"],
    ],
  },
  {
    text: "Understand",
    pages: [["docs/guarantees.md"], ["docs/reliability.md"], ["PERFORMANCE.md"], ["ARCHITECTURE.md"]],
  },
  { text: "Compare", pages: [["docs/compare/README.md"], ["docs/compare/"]] },
  { text: "Agents", pages: [["docs/agents.md"]] },
  {
    text: "More",
    pages: [["docs/glossary.md"], ["docs/faq.md"], ["CHANGELOG.md"], ["CONTRIBUTING.md"]],
  },
];

/** The groups with the pages that exist: each with its title and its path from the root. */
export function sidebar() {
  const named = new Set(groups.flatMap(({ pages }) => pages.map(([path]) => path)));
  return groups
    .map(({ text, pages }) => ({
      text,
      pages: pages.flatMap(([path, title]) =>
        path.endsWith("/") ? folder(path, named) : existsSync(root + path) ? [entry(path, title)] : [],
      ),
    }))
    .filter(({ pages }) => pages.length > 0);
}

/** @param {string} path @param {ReadonlySet<string>} named */
function folder(path, named) {
  if (!existsSync(root + path)) return [];
  return readdirSync(root + path, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md") && !named.has(path + name))
    .map((name) => entry(path + name))
    .toSorted((a, b) => a.title.localeCompare(b.title, "en"));
}

/** @param {string} path @param {string} [title] */
function entry(path, title) {
  const [, heading] = /^# (.*)$/m.exec(readFileSync(root + path, "utf8")) ?? [];
  if (heading === undefined) throw new Error(`${path} has no heading of the first level`);
  return { path, title: title ?? heading.replaceAll("`", "") };
}
