// What the tests of the page share.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { browser, server } from "./start.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const VIEWS = ["", "host", "controls", "path", "first-window", "experiment", "tests", "traffic", "fleet", "analysis", "file", "what-if", "lab", "stacks", "history", "calculator", "doctor", "nonsense"];
export const SCREENS = [
  { width: 1180, height: 860 },
  { width: 390, height: 844 },
];
export const LOOKS = SCREENS.flatMap((viewport) => ["light", "dark"].map((colorScheme) => ({ colorScheme, viewport })));

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
    // A test that failed leaves its page open: what it shows says why.
    for (const page of chrome.contexts().flatMap((context) => context.pages())) {
      console.log(`left open: ${page.url()}\n${await page.evaluate(() => document.body.innerText).catch(String)}`);
    }
    for (const context of chrome.contexts()) await context.close();
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

/** What axe finds serious, by all its rules or by these. Its script is let in past the page's policy by the debugger, as a user's tool is. */
export async function serious(page, rules = null) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
  const found = await page.evaluate((rules) => globalThis.axe.run({ resultTypes: ["violations"], ...(rules && { runOnly: { type: "rule", values: rules } }) }), rules);
  return found.violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

/** The rules of axe whose outcome depends on colours, and nothing else does between light and dark. */
const OF_COLOURS = ["color-contrast", "link-in-text-block"];

/** A view as it is now is accessible and as wide as its screen, on this screen, in the colours it has and in the others. */
export async function accessible(page, name, { viewport, colorScheme }) {
  const called = `${name} ${viewport.width}`;
  await page.setViewportSize(viewport);
  // Charts follow their boxes a frame later.
  await page.waitForFunction(() => document.documentElement.scrollWidth <= innerWidth).catch(() => {});
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${called} is ${wide} px too wide`);
  assert.deepEqual(await serious(page), [], `${called} ${colorScheme}`);
  const other = colorScheme === "dark" ? "light" : "dark";
  // Colours that are on their way to others would be judged half-way.
  await page.emulateMedia({ colorScheme: other, reducedMotion: "reduce" });
  assert.deepEqual(await serious(page, OF_COLOURS), [], `${called} ${other}`);
  await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
}

/** The same wide and narrow. */
export async function fine(page, name) {
  const before = page.viewportSize();
  for (const viewport of SCREENS) await accessible(page, name, { viewport, colorScheme: "light" });
  await page.setViewportSize(before);
}
