import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

/** What the page may weigh, compressed, bytes: it has to come quickly over a slow line, too. */
const MOST = 120_000;

/** Leaves every file compressed, as the program embeds it. Nothing of the time or the machine goes into the files. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    closeBundle() {
      let bytes = 0;
      for (const entry of readdirSync("dist", { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || entry.name.startsWith(".")) continue;
        const path = join(entry.parentPath ?? entry.path, entry.name);
        const small = gzipSync(readFileSync(path), { level: 9 });
        bytes += small.length;
        writeFileSync(`${path}.gz`, small);
        rmSync(path);
      }
      if (bytes > MOST) throw new Error(`the page has ${bytes} bytes compressed, and ${MOST} is the most`);
    },
  };
}

export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  // Inlined files would need `data:` in the page's policy, and an inline script is forbidden by it.
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  server: { proxy: { "/api": { target: "http://127.0.0.1:7878", changeOrigin: true } } },
  plugins: [compressed()],
});
