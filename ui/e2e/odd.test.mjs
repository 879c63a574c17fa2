// What the page says where an answer is odd, old or gone, and that commands and files are those of what is shown.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { after, afterEach, before, test } from "node:test";
import { sampled } from "./fixtures.mjs";
import { fine, helped, settled } from "./help.mjs";
import { BINARY } from "./start.mjs";

const { open, served, begin, end, tidy } = helped();
before(begin);
afterEach(tidy);
after(end);

const experiment = (more) => ({ id: "a", kind: "tune", target: "adsl", tunnel: "lab", comment: "", state: "done", trials: 8, started_unix_us: 1.7e15, ...more });
/** The page gets these experiments as the journal's. */
const listed = (page, experiments) =>
  page.route(/\/api\/v1\/journal(\?.*)?$/, (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify({ schema_version: 1, experiments }) }));
const given = (page, path, body) => page.route(`**/api/v1/${path}`, (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify(body) }));

test("an experiment whose time can't be one takes no other with it", async () => {
  const { page, complaints } = await open("calculator");
  await listed(page, [experiment({ answer: "Set rwin." }), experiment({ id: "odd", answer: "Keep it.", started_unix_us: 9.2e18 })]);
  await page.goto(`${served().url}history`);
  await page.getByText("2 experiments", { exact: true }).waitFor();
  await page.getByRole("region", { name: "Experiments" }).getByText("?", { exact: true }).waitFor();
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download CSV" }).click()]);
  assert.equal(readFileSync(await file.path(), "utf8").trim().split("\n").length, 3);
  await page.goto(`${served().url}analysis?of=none`);
  await page.getByLabel("Experiment", { exact: true }).locator("option", { hasText: "adsl, ? (odd)" }).waitFor({ state: "attached" });
  await page.goto(served().url);
  await page.getByRole("heading", { name: "Your last verdict" }).waitFor();
  assert.deepEqual(complaints.filter((text) => !text.includes("Failed to load resource")), []);
  await page.context().close();
});

test("what can't be shown says so in its place, and leaves the rest", async () => {
  const { page } = await open("calculator");
  await listed(page, null);
  await page.goto(`${served().url}history`);
  await page.getByText("This can't be shown.").waitFor();
  await page.getByRole("heading", { name: "Changes of this host" }).waitFor();
  await page.context().close();
});

test("a run that the server has no longer is no sign that it was started again", async () => {
  const { page } = await open("path?run=feedfacecafe");
  await page.getByText("This server no longer has that probe: it keeps the last 16, and none from before it was started.").waitFor();
  await page.goto(`${served().url}experiment/feedfacecafe`);
  await page.getByText("This server no longer has that experiment").waitFor();
  await page.context().close();
});

test("the scenario file on the page is that of the path that is drawn, and never an error", async () => {
  const { page } = await open("lab");
  const button = page.getByRole("button", { name: "As a file" });
  const file = page.getByLabel("The path as a scenario file");
  await button.click();
  await file.getByText("50mbit").first().waitFor();
  await page.getByLabel("Rate down").first().fill("99mbit");
  await file.waitFor({ state: "detached" });
  await page.route("**/api/v1/lab/paths/toml", (route) => route.fulfill({ status: 400, contentType: "application/json", body: '{"error":{"what":"name is too long"}}' }));
  await button.click();
  await page.getByRole("alert").getByText("is too long").waitFor();
  assert.equal(await file.count(), 0);
  await page.getByLabel("Rate down").first().fill("fast");
  await page.waitForFunction(() => [...document.querySelectorAll("button")].find(({ innerText }) => innerText === "As a file").disabled);
  await page.context().close();
});

test("a command on the page is what the page does", async () => {
  const { page, complaints } = await open("experiment?vary=rwin&comment=--json");
  await settled(page);
  await page.getByText("As a command").first().click();
  const command = page.getByLabel("The same as a command").first();
  await command.getByText("--comment=--json").waitFor();
  const levels = page.getByLabel("Levels of rwin", { exact: true });
  await levels.pressSequentially("4x;16x");
  assert.equal(await levels.inputValue(), "4x;16x");
  await page.waitForFunction(() => location.search.includes("16x"));
  await page.reload();
  assert.equal(await levels.inputValue(), "4x;16x");
  // Where a busy machine types slowly, what stands there half-typed is asked for, and refused.
  assert.deepEqual(complaints.filter((complaint) => !complaint.includes("status of 400")), []);
  await page.context().close();
});

test("analysis offers what compares settings, shows the answer of every kind, and a report has a whole name", async () => {
  const control = { name: "reno", variant: "kernel", goodput_kBps: { mean: 700, runs: [700] }, against_first: null, t90_s: null, recovery_s: null, p95_queue_ms: null, retransmit_share: null, invalid_trials: 0 };
  const controls = { schema_version: 1, id: "c", lab: "adsl", trial_s: 5, path: { base_rtt_us: 1, capacity_bps: null }, verdict: { difference_shown: true, text: "bbr is faster." }, algorithms: [control] };
  const { page } = await open("calculator");
  await listed(page, [experiment({ id: "t", kind: "test" }), experiment({ id: "f", kind: "flent" }), experiment({ id: "c", kind: "cc" })]);
  for (const name of ["c", "last"]) await given(page, `reports/${name}`, controls);
  await page.goto(`${served().url}analysis`);
  await page.waitForURL("**/analysis?of=c");
  await page.getByText("bbr is faster.").waitFor();
  assert.equal(await page.getByLabel("Experiment", { exact: true }).locator("option").count(), 1);
  await page.goto(`${served().url}report/last`);
  await page.waitForURL("**/report/c");
  await page.getByText("bbr is faster.").waitFor();
  await page.context().close();
});

/** What a click gives to keep. */
const kept = async (page, button) => {
  const [file] = await Promise.all([page.waitForEvent("download"), button.click()]);
  return readFileSync(await file.path(), "utf8");
};

test("a test that has ended is in the log below it, and one that failed is in no headline as if it had counted", async () => {
  const { page, complaints } = await open("calculator");
  const of = (number, server, status, bytes) => ({ number, server, status, bytes, seconds: 1, goodput_bps: bytes * 8, started_unix_us: 1.7e15, notes: [] });
  const host = (server, completed) => ({ server, comment: "", tests: 1, completed, mean_bps: completed ? 8e6 : null, standard_error_bps: null });
  const [good, bad] = ["http://a/f.bin", "http://a/no.bin"];
  const logged = { schema_version: 1, id: "20261129-logged", settings: {}, tests: [of(1, good, "completed", 1e6), of(2, bad, "failed", 0)], hosts: [host(good, 1), host(bad, 0)], mean_bps: 8e6, standard_error_bps: null };
  let [told, ended] = [() => {}, false];
  const has = new Promise((resolve) => (told = resolve));
  await page.route(/\/api\/v1\/journal\?/, (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify({ schema_version: 1, experiments: ended ? [experiment({ id: logged.id, kind: "test", target: good, answer: "2 tests: 8 Mbit/s" })] : [] }) }));
  await given(page, "runs/feedfacecafe", { id: "feedfacecafe", kind: "test", request: {}, started_unix_us: 0, experiment: null, end: null });
  await page.route("**/api/v1/runs/feedfacecafe/events", async (route) => {
    await has;
    ended = true;
    await route.fulfill({ contentType: "text/event-stream", body: `event: result\ndata: ${JSON.stringify(logged)}\n\nevent: end\ndata: {"exit_code":0,"error":null}\n\n` });
  });
  await page.goto(`${served().url}tests?run=feedfacecafe`);
  await page.getByText("Nothing was logged yet.").waitFor();
  told();
  await page.getByRole("heading", { name: "8.00 Mbit/s, 1 of 2 tests of 2 servers, 1 failed" }).waitFor();
  await page.getByRole("region", { name: "Logs" }).getByText(logged.id).waitFor();
  // It stands above: one link leads to it.
  assert.equal(await page.getByRole("link", { name: logged.id }).count(), 1);
  await fine(page, "a test and the log");
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("two experiments side by side are tables with headings, and names of points near each other aren't written over each other", async () => {
  const { id, text } = sampled("adsl");
  const other = `${id.slice(0, -4)}0123`;
  for (const one of [text, text.replaceAll(id, other)]) execFileSync(BINARY, ["journal", "import", "-"], { env: served().env, input: one });
  const answer = await (await fetch(`${served().url}api/v1/compare?experiments=${id},${other}`)).json();
  const { page, complaints } = await open(`analysis?of=${id}&with=${other}`);
  await page.getByText(answer.headline, { exact: true }).waitFor();
  const table = (name) => page.getByRole("region", { name, exact: true });
  const current = table("The current settings, experiment by experiment");
  assert.deepEqual(await current.getByRole("columnheader").allInnerTexts(), ["Experiment", "Target", "Rounds", "Goodput", "Of the first"]);
  assert.deepEqual(await current.getByRole("rowheader").allInnerTexts(), [`1: ${id}`, `2: ${other}`]);
  const tried = table("What several of them tried");
  assert.deepEqual(await tried.getByRole("columnheader").allInnerTexts(), ["Setting", "Together", "Evidence", "In 1", "In 2"]);
  assert.deepEqual(await tried.getByRole("rowheader").allInnerTexts(), answer.settings.map(({ label }) => label));
  await fine(page, "side by side");

  const told = await (await fetch(`${served().url}api/v1/reports/${id}`)).json();
  const arms = told.arms.map((arm, place) => ({ ...arm, delay_us: 150_000 + place * 400, goodput_bps: 6.1e6 + (place % 2) * 4e4, state: place === 0 ? "current" : "open" }));
  assert.ok(arms.length >= 3);
  await given(page, `reports/${id}`, { ...told, arms, frontier: arms.map((_, place) => place) });
  await page.goto(`${served().url}report/${id}`);
  const svg = await kept(page, page.getByRole("button", { name: /^SVG: Goodput against delay/ }));
  const names = arms.map(({ label }, place) => (place === 0 ? "current" : label.split(" (")[0]));
  const boxes = await page.evaluate(
    ([svg, names]) => {
      const at = document.createElement("div");
      at.innerHTML = svg;
      document.body.append(at);
      return [...at.querySelectorAll("text")].filter(({ textContent }) => names.includes(textContent)).map((node) => [node.textContent, node.getBBox()].map((of) => (typeof of === "string" ? of : [of.x, of.y, of.x + of.width, of.y + of.height])));
    },
    [svg, names],
  );
  assert.equal(boxes.length, names.length);
  for (const [place, [name, a]] of boxes.entries())
    for (const [other, b] of boxes.slice(0, place)) assert.ok(a[0] >= b[2] || a[2] <= b[0] || a[1] + 3 >= b[3] || a[3] <= b[1] + 3, `${name} ${a} over ${other} ${b}`);
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("the model's charts reach the end of a transfer of minutes, and what is left to chance is said", async () => {
  const { page, complaints } = await open("what-if?rate=0&loss=100");
  await page.getByText(/^Medians of 5 random runs, goodput .* kbit\/s.*; the charts are of one of them\.$/).waitFor();
  const figure = page.locator(".figure").filter({ hasText: /^Completed after/ }).locator("dd");
  const end = parseFloat(await figure.innerText());
  const rows = (await kept(page, page.getByRole("button", { name: /^CSV: Goodput over time/ }))).trim().split("\n");
  const last = parseFloat(rows.at(-1));
  assert.ok(end > 300 && last > 0.8 * end && last < 1.25 * end, `${last} s of ${end} s`);
  await page.getByLabel("Loss", { exact: true }).fill("0");
  await page.getByText(/random runs/).waitFor({ state: "detached" });
  assert.deepEqual(complaints, []);
  await page.context().close();
});
