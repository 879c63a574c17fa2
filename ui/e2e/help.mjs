// What the tests of the page share.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { browser, server } from "./start.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const VIEWS = ["", "host", "path", "first-window", "experiment", "analysis", "file", "what-if", "lab", "history", "calculator", "doctor", "nonsense"];
export const LOOKS = [
  { colorScheme: "light", viewport: { width: 1180, height: 860 } },
  { colorScheme: "dark", viewport: { width: 1180, height: 860 } },
  { colorScheme: "light", viewport: { width: 390, height: 844 } },
  { colorScheme: "dark", viewport: { width: 390, height: 844 } },
];

/** What kernels do may take long where others use the machine, too. */
export const PATIENCE = { timeout: 180_000 };

/** A server and a browser for the tests of one file. */
export function helped() {
  let served, chrome;
  const begin = async () => {
    served = await server();
    chrome = await browser();
  };
  const end = async () => {
    await chrome?.close();
    await served?.end();
  };
  /** A page whose every complaint is kept: broken scripts, refused files, violated policy. */
  const open = async (path, look = LOOKS[0], at = served.url) => {
    const context = await chrome.newContext({ reducedMotion: "reduce", ...look });
    const page = await context.newPage();
    const complaints = [];
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    await page.goto(at + path);
    return { page, complaints };
  };
  /** Starts something through the API. */
  const post = async (path, body) => {
    const response = await fetch(`${served.url}api/v1/${path}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    assert.equal(response.status, 202);
    return response.json();
  };
  /** Waits until that has ended: its stream of events does then, too. */
  const wait = async ({ id }) => (await fetch(`${served.url}api/v1/runs/${id}/events`)).text();
  /** Whatever a test left running would be in the way of the next one: only one thing is measured at a time. */
  const tidy = async () => {
    for (const run of await (await fetch(`${served.url}api/v1/runs`)).json()) {
      if (run.end) continue;
      await fetch(`${served.url}api/v1/runs/${run.id}`, { method: "DELETE" });
      await wait(run);
    }
  };
  return { open, post, wait, served: () => served, chrome: () => chrome, begin, end, tidy };
}

/** Waits until a view has what it asked for. */
export const settled = (page) => page.waitForFunction(() => !document.body.innerText.includes("Reading …"));

/** What axe finds serious. The test's own script is let in past the page's policy by the debugger, as a user's tool is. */
export async function serious(page) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => globalThis.axe.run());
  return found.violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

/** A view as it is now is accessible and as wide as its screen, in light and dark, wide and narrow. */
export async function fine(page, name) {
  const before = page.viewportSize();
  for (const { colorScheme, viewport } of LOOKS) {
    // Colours that are on their way to others would be judged half-way.
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.setViewportSize(viewport);
    const called = `${name} ${colorScheme} ${viewport.width}`;
    // Charts follow their boxes a frame later.
    await page.waitForFunction(() => document.documentElement.scrollWidth <= innerWidth).catch(() => {});
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${called} is ${wide} px too wide`);
    assert.deepEqual(await serious(page), [], called);
  }
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  await page.setViewportSize(before);
}
