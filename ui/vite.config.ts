// Three pages of one build: `--mode gctd` is the tracker's dashboard, `--mode pantry` the kitchen's page, `--mode graphql` the page for
// queries. Each goes into the Python package that serves it.

import { defineConfig, type PluginOption } from "vite";
import { ownAddresses } from "./addresses.ts";
import { offline, WORKER } from "./offline.ts";

interface Page {
  out: string;
  base: string;
  plugins: PluginOption[];
  /** Scripts that are not part of the page. */
  scripts: Record<string, string>;
}

const PAGES: Record<string, Page> = {
  gctd: { out: "../../gctd/http/dashboard", base: "/", plugins: [], scripts: {} }, // deep links such as /tasks/<id> need addresses from the root
  graphql: { out: "../../graphql_fn/http/editor", base: "/", plugins: [], scripts: {} }, // it is also at /function/<name>
  pantry: {
    out: "../../pantry/http/kitchen",
    base: "./",
    plugins: [ownAddresses(), offline()],
    scripts: { [WORKER]: "pantry/offline/sw.ts", decoder: "pantry/camera/worker.ts" },
  },
};

const SERVICE = "http://127.0.0.1:8080";

export default defineConfig(({ mode }) => {
  const page = PAGES[mode];
  if (!page) throw new Error(`--mode is one of ${Object.keys(PAGES).join(", ")}`);
  return {
    root: mode,
    base: page.base,
    publicDir: false,
    plugins: page.plugins,
    oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
    build: {
      outDir: page.out,
      assetsDir: "static",
      assetsInlineLimit: 0, // the content policy has no data: but for images
      emptyOutDir: true,
      license: { fileName: "licenses.txt" }, // the licences of bundled packages require their text in every copy; the help links to it
      rolldownOptions: {
        input: { index: `${mode}/index.html`, ...page.scripts },
        output: { entryFileNames: ({ name }) => (name in page.scripts ? `${name}.js` : "static/[name]-[hash].js") },
      },
      modulePreload: { polyfill: false },
      reportCompressedSize: false,
      chunkSizeWarningLimit: 700, // a test holds the compressed sizes
      target: ["chrome123", "firefox121", "safari17.5"], // browsers with light-dark()
    },
    server: {
      proxy: {
        "/api": {
          target: SERVICE,
          changeOrigin: true,
          headers: { origin: SERVICE }, // changes are taken from the service's own pages only
        },
        "/livez": SERVICE,
      },
    },
  };
});
