// The page in a real browser, in a network namespace of its own: see scripts/page.sh.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import { browser, server } from "./start.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const VIEWS = ["host", "calculator", "experiment", "history"];
const LOOKS = [
  { colorScheme: "light", viewport: { width: 1180, height: 860 } },
  { colorScheme: "dark", viewport: { width: 1180, height: 860 } },
  { colorScheme: "light", viewport: { width: 390, height: 844 } },
  { colorScheme: "dark", viewport: { width: 390, height: 844 } },
];

let served;
let chrome;
before(async () => {
  served = await server();
  chrome = await browser();
});
after(async () => {
  await chrome?.close();
  await served?.end();
});

/** A page whose every complaint is kept: broken scripts, refused files, violated policy. */
async function open(path, look = LOOKS[0]) {
  const context = await chrome.newContext(look);
  const page = await context.newPage();
  const complaints = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  await page.goto(served.url + path);
  return { page, complaints };
}

/** Waits until a view has what it asked for. */
const settled = (page) => page.waitForFunction(() => !document.body.innerText.includes("Reading …"));

/** What axe finds serious. The test's own script is let in past the page's policy by the debugger, as a user's tool is. */
async function serious(page) {
  await page.evaluate(AXE);
  const found = await page.evaluate(() => globalThis.axe.run());
  return found.violations.filter(({ impact }) => impact === "serious" || impact === "critical").map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

test("every view is accessible, fits its screen and has no complaints, in light and dark, wide and narrow", async () => {
  for (const look of LOOKS) {
    for (const view of VIEWS) {
      const { page, complaints } = await open(view, look);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await settled(page);
      if (view === "calculator") await page.locator("#sawtooth ~ .chart canvas").waitFor();
      const name = `${view} ${look.colorScheme} ${look.viewport.width}`;
      assert.deepEqual(await serious(page), [], name);
      assert.deepEqual(complaints, [], name);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${name} is ${wide} px too wide`);
      await page.context().close();
    }
  }
});

test("the page is at most 300 kB, all of it compressed", async () => {
  const { page } = await open("");
  const first = await page.evaluate(() => performance.getEntriesByType("resource").filter(({ name }) => !name.includes("/api/")).reduce((sum, entry) => sum + entry.encodedBodySize, 0));
  assert.ok(first > 10_000 && first <= 300_000, `${first} bytes`);
  await page.context().close();
});

test("by keyboard: the first stop leads past the bar, and the bar to every view", async () => {
  const { page } = await open("host");
  await page.getByRole("heading", { name: "Findings" }).waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent.trim()), "To the content");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Calculator" }).waitFor();
  assert.equal(new URL(page.url()).pathname, "/calculator");
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "Host" }).waitFor();
  await page.context().close();
});

test("the calculator gives the command line's figures as one types, and says what is wrong", async () => {
  const { page } = await open("calculator");
  const figures = page.locator(".figures");
  await figures.getByText("85.61 %", { exact: true }).waitFor();
  await figures.getByText("32 cells").waitFor();
  await page.getByLabel("MTU", { exact: true }).fill("1454");
  const answer = await (await fetch(`${served.url}api/v1/overhead?encap=pppoe-llc-bridged-fcs-atm&mtu=1454`)).json();
  await figures.getByText(`${(answer.efficiency * 100).toFixed(2)} %`, { exact: true }).waitFor();
  await page.getByLabel("Encapsulation", { exact: true }).fill("nonsense");
  await page.getByRole("alert").first().getByText("nonsense").waitFor();
  await page.context().close();
});

test("an experiment is started, watched to its end and read, and stays in the history", async () => {
  const { page, complaints } = await open("experiment");
  await page.getByText("1492 bytes").waitFor();
  await page.getByLabel("mtu", { exact: true }).uncheck();
  await page.getByLabel("cc", { exact: true }).uncheck();
  await page.getByLabel("Levels of rwin", { exact: true }).fill("4x,64x");
  await page.getByLabel("Each trial", { exact: true }).fill("500ms");
  await page.getByLabel("Budget", { exact: true }).fill("12 trials");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByRole("progressbar", { name: "Trials" }).waitFor({ timeout: 60_000 });
  await page.getByRole("heading", { name: "Goodput" }).waitFor({ timeout: 60_000 });
  // Whoever loads the page again goes on watching.
  await page.reload();
  await page.getByRole("button", { name: "Another experiment" }).waitFor({ timeout: 120_000 });
  const verdict = await page.locator(".verdict h2").innerText();
  await page.getByRole("heading", { name: "Evidence" }).waitFor();
  assert.deepEqual(await serious(page), []);
  await page.getByRole("link", { name: "History" }).click();
  await page.getByRole("button", { name: /adsl/ }).click();
  await page.getByRole("heading", { name: verdict }).waitFor();
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("a running experiment can be stopped, and keeps what was measured", async () => {
  const { page } = await open("experiment");
  await page.getByRole("button", { name: "Another experiment" }).click();
  await page.getByLabel("Each trial", { exact: true }).fill("500ms");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByRole("progressbar", { name: "Trials" }).waitFor({ timeout: 60_000 });
  await page.getByRole("button", { name: /Stop/ }).click();
  await page.getByRole("button", { name: "Another experiment" }).waitFor({ timeout: 60_000 });
  const [last] = await (await fetch(`${served.url}api/v1/experiments`)).json();
  const journal = await (await fetch(`${served.url}api/v1/journal`)).json();
  const kept = journal.experiments.find(({ id }) => id === last.experiment);
  assert.notEqual(kept.state, "running");
  await page.context().close();
});

test("a change needs the token, is applied, counted down, undone, and stands in the history", async () => {
  const { page } = await open("host");
  await page.getByRole("heading", { name: "Change", exact: true }).waitFor();
  const sack = async () => {
    const { knobs } = await (await fetch(`${served.url}api/v1/settings`)).json();
    return knobs.find(({ key }) => key === "sack").value;
  };
  assert.equal(await sack(), "on");
  const plan = async () => {
    await page.getByLabel("Setting", { exact: true }).selectOption("sack");
    await page.getByLabel("New value", { exact: true }).fill("off");
    await page.getByRole("button", { name: "Show the plan" }).click();
  };
  await plan();
  const apply = page.getByRole("button", { name: /^Apply/ });
  await apply.click();
  await page.getByRole("alert").getByText("needs the token").waitFor();
  assert.equal(await sack(), "on");
  await page.goto(`${served.url}host#token=${served.token}`);
  await page.reload();
  assert.equal(new URL(page.url()).hash, "");
  await plan();
  await apply.click();
  await page.getByRole("heading", { name: /is put back in/ }).waitFor();
  assert.equal(await sack(), "off");
  await page.getByRole("button", { name: "Undo now" }).click();
  await page.getByRole("heading", { name: /is put back in/ }).waitFor({ state: "detached" });
  assert.equal(await sack(), "on");
  await plan();
  await apply.click();
  await page.getByRole("button", { name: "Confirm", exact: true }).click();
  await page.getByRole("heading", { name: /is put back in/ }).waitFor({ state: "detached" });
  assert.equal(await sack(), "off");
  await page.getByRole("link", { name: "History" }).click();
  await page.getByRole("button", { name: /^Undo change/ }).click();
  await page.getByRole("button", { name: /^Undo change/ }).waitFor({ state: "detached" });
  assert.equal(await sack(), "on");
  await page.context().close();
});
