/**
 * Builds the dashboard to static files. All addresses in them are relative to `<base>`, which the
 * server fills in, so that the dashboard works under any path. Names of assets carry a hash: caches
 * may keep them forever.
 */

import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  build: {
    outDir: "dist/app",
    emptyOutDir: true,
    target: "es2022",
    // The first browsers with light-dark().
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    modulePreload: { polyfill: false },
    // A data: address would be refused by the content security policy.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  server: { proxy: { "/v1": "http://127.0.0.1:8080", "/metrics": "http://127.0.0.1:8080" } },
});
