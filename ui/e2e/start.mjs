import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

export const BINARY = process.env.WINDTUNNEL ?? new URL("../../target/release/windtunnel", import.meta.url).pathname;
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/**
 * A server with a journal, a state and configuration files of its own; all of it goes away with `end`. `stop` ends the server
 * alone, and `again` starts it anew where it was, with the same files and another token.
 */
export async function server(...more) {
  const dir = mkdtempSync(join(tmpdir(), "windtunnel-page-"));
  const env = {
    ...process.env,
    XDG_DATA_HOME: join(dir, "data"),
    WINDTUNNEL_STATE_DIR: join(dir, "state"),
    WINDTUNNEL_ROOT: join(dir, "root"),
  };
  let child, ended;
  const begin = async (listen) => {
    child = spawn(BINARY, ["web", "--json", ...listen, ...more], { env, stdio: ["ignore", "pipe", "inherit"] });
    ended = new Promise((resolve) => child.once("exit", resolve));
    const line = await new Promise((resolve, reject) => {
      createInterface({ input: child.stdout }).once("line", resolve);
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`windtunnel web ended with ${code}`)));
    });
    return JSON.parse(line);
  };
  const served = await begin(more.includes("--listen") ? [] : ["--listen", "127.0.0.1:0"]);
  const stop = async () => {
    child.kill("SIGINT");
    await ended;
  };
  return {
    ...served,
    env,
    stop,
    again: () => begin(["--listen", `127.0.0.1:${new URL(served.url).port}`]),
    end: async () => {
      await stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** A browser without a screen. */
export function browser() {
  // As root Chromium has no sandbox; it sees nothing here but our own page.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: CHROMIUM, args });
}
