// Pictures of each view: scripts/pictures.sh BINARY [FOLDER [all]]
// Without `all`, those of the guide: light, desktop. With it, dark and phone too, and whole pages, to look at.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { browser, server } from "./start.mjs";

const [folder = "../docs/guide/pictures", all] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const looks = [{ name: "", colorScheme: "light", viewport: { width: 1180, height: 860 } }];
if (all) {
  looks.push({ name: "-dark", colorScheme: "dark", viewport: { width: 1180, height: 860 } });
  looks.push({ name: "-phone", colorScheme: "light", viewport: { width: 390, height: 844 } });
  looks.push({ name: "-phone-dark", colorScheme: "dark", viewport: { width: 390, height: 844 } });
}

if (process.env.WINDTUNNEL_PICTURES !== "own-namespace") throw new Error("it changes settings of its namespace: use scripts/pictures.sh");
const served = await server();
const chrome = await browser();
const patience = { timeout: 300_000 };
/** The experiment with pages. */
let pages = "";

/** What is done once, before pictures of any look are taken. */
const prepare = {
  async experiment(page) {
    await page.goto(`${served.url}experiment`);
    await page.locator(".figures").waitFor();
    await page.getByText(/if it needs all/).waitFor();
    if (all) await page.screenshot({ path: join(folder, "web-choose.png"), fullPage: true });
    await page.getByLabel("mtu", { exact: true }).uncheck();
    await page.getByLabel("cc", { exact: true }).uncheck();
    await page.getByLabel("Levels of rwin").fill("4x,8x,16x,32x");
    await page.getByLabel("Each trial").fill("500ms");
    await page.getByLabel("Budget").fill("40 trials");
    await page.getByRole("button", { name: "Start" }).click();
    if (all) {
      await page.locator("#goodput ~ .strips").waitFor(patience);
      await page.locator("#now ~ .chart canvas").waitFor(patience);
      await page.screenshot({ path: join(folder, "web-live.png"), fullPage: true });
    }
    await page.getByRole("link", { name: "Another experiment" }).waitFor(patience);
  },
  async pages() {
    const request = { lab: "transatlantic", workload: "page", knobs: ["initcwnd"], levels: { initcwnd: "32" }, budget: "16 trials" };
    const response = await fetch(`${served.url}api/v1/experiments`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(request) });
    const { id } = await response.json();
    await (await fetch(`${served.url}api/v1/runs/${id}/events`)).text();
    const { experiments } = await (await fetch(`${served.url}api/v1/journal`)).json();
    pages = experiments.find(({ workload }) => workload === "page").id;
  },
  /** A change that was confirmed and one that was undone. */
  async history() {
    const change = async (verb, body) => {
      const headers = { "content-type": "application/json", "x-windtunnel-token": served.token };
      const response = await fetch(`${served.url}api/v1/settings/${verb}`, { method: "POST", headers, body: JSON.stringify(body) });
      if (!response.ok) throw new Error(await response.text());
    };
    await change("apply", { settings: { initcwnd: "20" }, to: "default", confirm_within_s: 60 });
    await change("confirm", {});
    await change("apply", { settings: { sack: "off" }, confirm_within_s: 60 });
    await change("undo", {});
  },
  async lab(page) {
    await page.goto(`${served.url}lab`);
    await page.getByRole("button", { name: "Start it" }).click();
    await page.locator("#up").waitFor(patience);
  },
};

/** Each view, and what must be there before its picture is taken. */
const views = {
  host: (page) => page.getByRole("heading", { name: "Findings" }).waitFor(),
  calculator: (page) => page.locator("#sawtooth ~ .chart canvas").waitFor(),
  experiment: async (page) => {
    const [run] = await (await fetch(`${served.url}api/v1/experiments`)).json();
    await page.goto(`${served.url}experiment/${run.id}`);
    await page.locator("#arms").waitFor();
  },
  "what-if": async (page) => {
    const slider = page.getByLabel("RWIN");
    await slider.fill("80");
    await page.locator("#over-time ~ .pair canvas").nth(1).waitFor();
    await page.waitForTimeout(500);
  },
  path: async (page) => {
    await page.getByRole("button", { name: "Probe the path" }).click();
    await page.locator("#hops").waitFor(patience);
    await page.getByRole("button", { name: "Scan sizes" }).click();
    await page.locator("#scan ~ .pair canvas").nth(1).waitFor(patience);
    await page.locator("#sawtooth ~ .chart canvas").waitFor();
  },
  lab: async (page) => {
    await page.locator("#up").waitFor(patience);
    await page.getByLabel("How much").fill("3s");
    await page.getByRole("button", { name: "Run it" }).click();
    await page.locator("#transfer ~ .chart canvas").first().waitFor(patience);
  },
  "first-window": async (page) => {
    await page.getByRole("button", { name: "Ask", exact: true }).click();
    await page.locator("#window").waitFor(patience);
  },
  waterfall: async (page) => {
    await page.goto(`${served.url}waterfall/${pages}`);
    await page.locator(".waterfall svg").nth(1).waitFor();
  },
  analysis: async (page) => {
    const { experiments } = await (await fetch(`${served.url}api/v1/journal`)).json();
    await page.goto(`${served.url}analysis?of=${experiments.find(({ id }) => id !== pages).id}`);
    await page.locator("#delay ~ .chart canvas").waitFor(patience);
  },
  history: (page) => page.getByRole("link", { name: /^adsl: / }).first().waitFor(),
};
/** Pictures that show a part further down. */
const parts = { analysis: "#time", path: "#found", lab: "#up" };

try {
  const first = await chrome.newPage({ ...looks[0], reducedMotion: "reduce" });
  await prepare.experiment(first);
  await prepare.pages();
  await prepare.history();
  await prepare.lab(first);
  await first.close();
  for (const { name, ...look } of looks) {
    const page = await chrome.newPage({ ...look, reducedMotion: "reduce" });
    for (const [view, ready] of Object.entries(views)) {
      await page.goto(`${served.url}${view}`);
      await ready(page);
      if (!all && parts[view]) await page.locator(parts[view]).evaluate((node) => node.scrollIntoView());
      await page.screenshot({ path: join(folder, `web-${view}${name}.png`), fullPage: Boolean(all) });
    }
    await page.close();
  }
} finally {
  await chrome.close();
  await served.end();
}
