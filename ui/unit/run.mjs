// Runs the unit tests of this folder in Node. Vite bundles each file with the modules that it imports, as for the pages.

import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { build } from "vite";

const folder = import.meta.dirname;
const names = readdirSync(folder).filter((name) => name.endsWith(".test.ts"));
const outDir = mkdtempSync(join(tmpdir(), "unit-"));
try {
  await build({
    configFile: false,
    root: folder,
    logLevel: "warn",
    ssr: { noExternal: true },
    build: {
      ssr: true,
      outDir,
      emptyOutDir: true,
      minify: false,
      rolldownOptions: {
        input: Object.fromEntries(names.map((name) => [basename(name, ".ts"), join(folder, name)])),
        output: { entryFileNames: "[name].mjs", chunkFileNames: "shared/[name]-[hash].mjs" },
      },
    },
  });
  const tests = names.map((name) => join(outDir, `${basename(name, ".ts")}.mjs`));
  const { status } = spawnSync(process.execPath, ["--test", "--test-force-exit", ...process.argv.slice(2), ...tests], { stdio: "inherit" });
  process.exitCode = status ?? 1;
} finally {
  rmSync(outDir, { recursive: true, force: true });
}
