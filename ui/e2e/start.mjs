import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const BINARY = process.env.WINDTUNNEL ?? new URL("../../target/release/windtunnel", import.meta.url).pathname;
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** A server with a journal, a state and configuration files of its own; all of it goes away with `end`. */
export async function server(...more) {
  const dir = mkdtempSync(join(tmpdir(), "windtunnel-page-"));
  const env = {
    ...process.env,
    XDG_DATA_HOME: join(dir, "data"),
    WINDTUNNEL_STATE_DIR: join(dir, "state"),
    WINDTUNNEL_ROOT: join(dir, "root"),
  };
  const child = spawn(BINARY, ["web", "--json", ...(more.includes("--listen") ? [] : ["--listen", "127.0.0.1:0"]), ...more], { env, stdio: ["ignore", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const line = await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve);
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`windtunnel web ended with ${code}`)));
  });
  const { url, token } = JSON.parse(line);
  const end = async () => {
    child.kill("SIGINT");
    await ended;
    rmSync(dir, { recursive: true, force: true });
  };
  return { url, token, end };
}

/** A browser without a screen. */
export function browser() {
  // As root Chromium has no sandbox; it sees nothing here but our own page.
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath: CHROMIUM, args });
}
