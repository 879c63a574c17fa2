// Experiments on a server's own connections, a fleet, and logged tests.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { after, afterEach, before, test } from "node:test";
import { FLEET, FOUND, GAIN, ID } from "./fixtures.mjs";
import { fine, helped, PATIENCE } from "./help.mjs";

const { open, served, begin, end, tidy } = helped();
before(begin);
afterEach(tidy);
after(end);

const api = async (path) => (await fetch(`${served().url}api/v1/${path}`)).json();
const answer = (body, status = 200) => (route) => route.fulfill({ status, contentType: "application/json", body: JSON.stringify(body) });
/** The cell of a row under a name. */
const cell = (table, row, name) => table.getByRole("row").filter({ has: table.page().getByRole("rowheader", { name: row, exact: true }) }).locator(`[data-name="${name}"]`);

const shown = async (report, status = { schema_version: 1, running: [] }) => {
  const { page, complaints } = await open("calculator");
  await page.route(/\/api\/v1\/traffic$/, answer(status));
  await page.route(`**/api/v1/traffic/${ID}`, answer(report));
  await page.goto(`${served().url}traffic/${ID}`);
  await page.getByRole("heading", { name: "Self-checks" }).waitFor();
  return { page, complaints };
};

test("a gain of real traffic is told with its size, its evidence, whom it holds for and what to type", async () => {
  const { page, complaints } = await shown(GAIN);
  await page.getByRole("heading", { level: 2, name: GAIN.verdict.text }).waitFor();
  const verdict = page.locator("section.verdict.faster");
  const text = await verdict.innerText();
  for (const part of ["Evidence 812 : 1, 40 : 1 is needed", "5\u202f120 networks of clients × epochs", "15\u202f850 connections", "goodput +18 % (+6.0 % to +32 %), 31 ms less per connection (12 ms to 49 ms)", "Beside initcwnd=10 only."]) assert.ok(text.includes(part), `${part}: ${text}`);
  assert.equal(await page.getByLabel("What to type on the server", { exact: true }).innerText(), GAIN.next[0].command);
  const arms = page.getByRole("region", { name: "Connections by setting" });
  const said = async (name, column) => (await cell(arms, name, column).innerText()).replaceAll("\n", " ");
  assert.match(await said("initcwnd=32", "Assigned"), /4\u202f000 25\.00 %/);
  assert.match(await said("initcwnd=32", "Recorded"), /3\u202f950 100 open/);
  assert.match(await said("initcwnd=32", "Missed"), /7$/);
  assert.match(await said("initcwnd=32", "Compliance"), /98\.00 % 3 refused by the kernel/);
  // One line, at 1: 812 of 40 is beyond it, 0.02 is far from it.
  const chart = page.getByRole("list", { name: "Evidence over what is needed of 2 claims; the line is at 1" });
  const rules = await chart.locator(".strip-rule").evaluateAll((lines) => [...new Set(lines.map((line) => line.style.left))]);
  assert.equal(rules.length, 1);
  const bars = await chart.locator(".strip-bar").evaluateAll((bars) => bars.map((bar) => parseFloat(bar.style.width)));
  assert.ok(bars[0] > parseFloat(rules[0]) && bars[1] < 10, `${bars} beside ${rules}`);
  assert.match(await chart.getByRole("listitem").first().innerText(), /812 : 1 of 40 : 1, shown$/);
  assert.equal(bars[1], 0, "a bet that has lost is no evidence");
  // Never "0 : 1": what is small isn't nothing.
  assert.match(await chart.getByRole("listitem").nth(1).innerText(), /< 0\.1 : 1 of 40 : 1$/);
  const classes = page.getByRole("region", { name: "Connections by size" });
  assert.match(await cell(classes, "10 kB to 100 kB", "initcwnd=32").innerText(), /3\.70 Mbit\/s\s+2\u202f000 connections, 50\.00 %; nine of ten within 176 ms/);
  assert.equal(await page.getByRole("region", { name: "Guardrails" }).getByText("quiet").count(), 5);
  await fine(page, "a gain of real traffic");
  // An address of its own, also from the report that History and others lead to.
  await page.route(`**/api/v1/reports/${ID}`, answer(GAIN));
  await page.goto(`${served().url}report/${ID}`);
  await page.waitForURL(`**/traffic/${ID}`);
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("what went wrong is red, what holds for everybody is said, and a holdback whose gain is gone says so", async () => {
  const stopped = { ...GAIN, verdict: { ...GAIN.verdict, kind: "stopped", needed: 100, evidence: 230, text: "initcwnd=32 is stopped: more is retransmitted beside initcwnd=10." }, guardrails: GAIN.guardrails.map((guard) => (guard.guard === "retransmissions" ? { ...guard, stopped: true, evidence: 230 } : guard)), self_checks: [{ name: "accounting", ok: false, text: "12 connections of the kernel's count weren't seen" }], next: [{ text: "Look at the self-checks that failed before you act.", command: null }] };
  let { page } = await shown(stopped);
  await page.locator("section.verdict.bad").waitFor();
  await page.getByText("has stopped it").waitFor();
  await page.getByText("12 connections of the kernel's count weren't seen").waitFor();
  await fine(page, "a guard that has stopped");
  await page.context().close();
  const everybody = { ...GAIN, unit: "slot", verdict: { ...GAIN.verdict, claim: "everybody" }, effects: [{ ...GAIN.effects[0], saved_ms: -4.2, saved_low_ms: -9, saved_high_ms: 1, total_ratio: 0.97, spillover_ratio: 1.01 }] };
  ({ page } = await shown(everybody));
  await page.getByText("Claimed of everybody: whole epochs were compared.").waitFor();
  assert.equal(await page.locator("#beside").count(), 0);
  await page.locator("section.verdict").getByText("4.2 ms more per connection (−1.0 ms to 9.0 ms)").waitFor();
  assert.equal(await cell(page.getByRole("region", { name: "Effects" }), "initcwnd=32", "If everybody has it").innerText().then((text) => text.trim().endsWith("−3.0 %")), true);
  await page.context().close();
  const gone = { ...GAIN, holdback: { state: "gone", ratio: 0.99, low: 0.97, high: 1.01, evidence_reversed: 3, text: "The gain is gone: goodput −1.0%." }, next: [{ text: "The gain is gone.", command: "sudo windtunnel settings undo" }] };
  ({ page } = await shown(gone));
  await page.locator("section.verdict.bad").getByText("The gain is gone: goodput −1.0%.").waitFor();
  await page.context().close();
});

test("while it runs it can be stopped with the token, and where that isn't allowed the command stands there", async () => {
  const running = { id: ID, ports: [443], arms: ["initcwnd=10", "initcwnd=32"], elapsed_s: 3700, tally: { passive_opens: 900, seen: 900, left_alone: 40, not_assigned: 10, arms: [{ assigned: 800, recorded: 790, lost: 0, open: 10, set_errors: 0, not_compliant: 0 }, { assigned: 50, recorded: 50, lost: 0, open: 0, set_errors: 0, not_compliant: 0 }] }, headline: "No difference between initcwnd=32 and initcwnd=10 is shown yet.", holdback: null };
  const status = { schema_version: 1, running: [running] };
  const { page } = await shown(GAIN, status);
  await page.getByText("850 of 900 connections assigned, 40 left alone").waitFor();
  await page.route(`**/api/v1/traffic/${ID}`, (route) => (route.request().method() === "DELETE" ? answer({ error: { what: `${ID} can't be stopped: EPERM`, cause: null, hint: "run this as who started it", exit_code: 3 } }, 409)(route) : answer(GAIN)(route)));
  await page.getByLabel("Token", { exact: true }).fill("anything");
  await page.getByRole("button", { name: "Stop it" }).click();
  await page.getByRole("alert").getByText("can't be stopped").waitFor();
  await page.getByText(`sudo windtunnel traffic stop ${ID}`).waitFor();
  await fine(page, "an experiment on connections under way");
  // The start page and the list know it.
  await page.goto(`${served().url}`);
  await page.getByRole("heading", { name: "Connections to port 443 are being assigned" }).waitFor();
  await page.getByRole("link", { name: "See how it stands" }).click();
  await page.waitForURL(`**/traffic/${ID}`);
  await page.goto(`${served().url}traffic`);
  await page.getByRole("link", { name: "Port 443: initcwnd=10 | initcwnd=32" }).waitFor();
  await page.context().close();
});

test("an experiment is planned, begun with the token, shown and stopped; History and the start page have it", async () => {
  const { page, complaints } = await open("");
  await page.getByLabel("Port of the server").fill("8443");
  await page.getByRole("button", { name: "Plan it" }).click();
  await page.waitForURL("**/traffic?ports=8443");
  await page.getByLabel("Settings and their levels").fill("initcwnd=10,99");
  await page.getByRole("button", { name: "Whom would it touch?" }).click();
  await page.getByRole("alert").getByText("1 to 64").waitFor(PATIENCE);
  complaints.length = 0;
  await page.getByLabel("Settings and their levels").fill("initcwnd=10,32");
  await page.getByText("As a command").click();
  await page.getByText("sudo windtunnel traffic start --port 8443 --levels initcwnd=10,32", { exact: true }).first().waitFor();
  await page.getByRole("button", { name: "Whom would it touch?" }).click();
  await page.getByRole("heading", { name: /^It would touch new connections to port 8443/ }).waitFor(PATIENCE);
  const shares = page.getByRole("region", { name: "Shares of the first connections" });
  assert.match(await cell(shares, "initcwnd=32", "Share at first").innerText(), /5\.00 %$/);
  await fine(page, "a plan for connections");
  const backends = await page.getByRole("region", { name: "What can assign connections here" }).getByRole("row").allInnerTexts();
  // As root in a namespace of its own: marks and routes work where nft is there.
  assert.ok(backends.some((row) => /routes[\s\S]*\sworks/.test(row)), backends.join("\n"));
  assert.ok(backends.every((row) => !row.includes("--")), `the page's own words, and no flags: ${backends.join("\n")}`);
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.getByRole("alert").getByText("needs the token").waitFor();
  complaints.length = 0;
  await page.getByLabel("Token", { exact: true }).fill(served().token);
  await page.getByRole("button", { name: "Start", exact: true }).click();
  await page.waitForURL(/traffic\?.*run=[0-9a-f]{12}/);
  await page.getByRole("link", { name: "See how it stands" }).click(PATIENCE);
  await page.waitForURL("**/traffic/*port-8443*");
  await page.getByRole("heading", { name: "Connections to port 8443 are being assigned" }).waitFor(PATIENCE);
  const id = new URL(page.url()).pathname.split("/").at(-1);
  const { running } = await api("traffic");
  assert.deepEqual(running.map(({ id }) => id), [id]);
  await page.getByRole("button", { name: "Stop it" }).click();
  await page.getByRole("heading", { level: 2, name: "No epoch is old enough to be scored yet." }).waitFor(PATIENCE);
  await page.getByRole("button", { name: "Download JSON" }).waitFor(PATIENCE);
  assert.deepEqual((await api("traffic")).running, []);
  const report = await api(`traffic/${id}`);
  assert.equal((await api(`reports/${id}`)).id, id);
  assert.deepEqual(report.arms.map(({ name }) => name), ["initcwnd=10", "initcwnd=32"]);
  await fine(page, "an experiment on connections that has ended");
  await page.goto(`${served().url}history`);
  await page.getByLabel("Search").fill("traffic");
  await page.getByRole("link", { name: `port-8443: ${id}` }).click();
  await page.waitForURL(`**/traffic/${id}`);
  await page.goto(served().url);
  await page.getByRole("link", { name: "Read the report" }).click();
  await page.waitForURL(`**/traffic/${id}`);
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("a fleet is a matrix of hosts and targets, with who waits for what and what holds where", async () => {
  const { page, complaints } = await open("calculator");
  await page.route(/\/api\/v1\/fleet$/, answer(FLEET));
  await page.route(/\/api\/v1\/fleet\/report\?mesh=north$/, answer(FOUND));
  await page.getByRole("link", { name: "Fleet" }).click();
  const matrix = page.getByRole("region", { name: "Verdicts by host and target" });
  await page.getByText("3 paths of 2 hosts: a setting is faster on 1.").waitFor();
  const first = await cell(matrix, "berlin", "wt://speed.example.org").innerText();
  for (const part of ["faster", "+18.4 %", "rwin=4MiB", "2 h ago", "due in 2 h"]) assert.ok(first.includes(part), `${part}: ${first}`);
  assert.match(await cell(matrix, "bonn", "https://mirror.example.net/large.bin").innerText(), /refused/);
  await page.getByText("isn't among this host's targets").waitFor();
  const turns = page.getByRole("region", { name: "Who has which turn, and who waits" });
  assert.match(await cell(turns, "bonn", "Waits for").innerText(), /berlin$/);
  const all = page.getByRole("region", { name: "Settings over all hosts" });
  const said = async (name) => (await cell(all, "rwin=4MiB", name).innerText()).replaceAll("\n", " ");
  assert.match(await said("Somewhere"), /9\u202f000 : 1 of 20 : 1/);
  assert.match(await said("Everywhere"), /0\.7 : 1 of 20 : 1/);
  assert.match(await said("Shown at"), /1 of 3/);
  assert.match(await said("On a new host"), /×1\.12 \(×0\.97 to ×1\.29\).*64 % of the spread/);
  const agents = page.getByRole("region", { name: "Agents" });
  assert.match(await cell(agents, "bonn", "Heard of").innerText(), /2 h ago/);
  assert.equal(await cell(agents, "berlin", "Clock off by").innerText(), "−0.25 s");
  assert.equal(await cell(agents, "cologne", "Clock off by").innerText(), "0.00 s");
  const changes = page.getByRole("region", { name: "Changes of settings by host" });
  const rows = (await changes.getByRole("row").allInnerTexts()).slice(1).map((text) => text.replaceAll(/\s+/g, " ").trim());
  assert.match(rows[0], /^wider undoing bonn: its guard took it back 1 berlin confirmed –$/);
  assert.match(rows[1], /2 bonn reverted the change is reverted here$/);
  await fine(page, "a fleet");
  await matrix.getByRole("link", { name: /^berlin to / }).click();
  await page.waitForURL("**/report/e-berlin");
  assert.deepEqual(complaints.filter((text) => !text.includes("400")), []);
  await page.context().close();
});

test("what two meshes say of one path stands with the name of each", async () => {
  const { page, complaints } = await open("calculator");
  const again = FLEET.jobs.flatMap((one) => [one, { ...one, mesh: "south", experiment: one.experiment && `s-${one.agent}` }]);
  await page.route(/\/api\/v1\/fleet$/, answer({ ...FLEET, jobs: again, rollouts: [] }));
  await page.route(/\/api\/v1\/fleet\/report\?mesh=south$/, answer(FOUND));
  await page.getByRole("link", { name: "Fleet" }).click();
  const matrix = page.getByRole("region", { name: "Verdicts by host and target" });
  const both = (await cell(matrix, "bonn", "wt://speed.example.org").innerText()).split("\n");
  assert.deepEqual(both.filter((line) => line === "north" || line === "south"), ["north", "south"]);
  assert.equal(await page.getByText(/large\.bin by south: mirror/).count(), 1);
  assert.equal(await page.getByRole("heading", { name: "Changes of settings" }).count(), 0);
  await fine(page, "two meshes");
  await page.getByLabel("Mesh").selectOption("south");
  await page.getByText(/large\.bin: mirror/).waitFor();
  assert.ok(!(await cell(matrix, "bonn", "wt://speed.example.org").innerText()).includes("south"));
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("without a fleet the page shows what this journal has, and no report of one", async () => {
  const { page, complaints } = await open("fleet");
  await page.getByText("This page reads one journal, without a fleet").waitFor();
  await page.getByText("Nothing is measured yet.").waitFor();
  await fine(page, "no fleet");
  const refused = await fetch(`${served().url}api/v1/fleet/report?mesh=north`);
  assert.equal(refused.status, 409);
  assert.match((await refused.json()).error.hint, /--journal postgresql/);
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("one download is logged with all settings in force, several servers in a table, in the unit that one likes", async () => {
  const file = Buffer.alloc(300_000, 7);
  const servers = [0, 1].map(() => createServer((_, response) => response.end(file)).listen(0, "127.0.0.1"));
  await Promise.all(servers.map((server) => once(server, "listening")));
  const urls = servers.map((server) => `http://127.0.0.1:${server.address().port}/file`);
  try {
    const { page, complaints } = await open("");
    await page.getByRole("link", { name: "download once and log it" }).click();
    await page.waitForURL("**/tests");
    await page.getByText("Nothing was logged yet.").waitFor();
    await fine(page, "no log");
    await page.getByLabel("Addresses of files").fill(urls.join(" "));
    await page.getByLabel("From each server").fill("2");
    await page.getByLabel("Note").fill("new modem");
    await page.getByRole("button", { name: "Download and log" }).click();
    await page.getByRole("alert").getByText("needs the token").waitFor();
    complaints.length = 0;
    await page.getByLabel("Token", { exact: true }).fill(served().token);
    await page.getByRole("button", { name: "Download and log" }).click();
    const hosts = page.getByRole("region", { name: "Servers", exact: true });
    await hosts.waitFor(PATIENCE);
    const { experiments } = await api("journal?kind=test");
    assert.equal(experiments.length, 1);
    const { id } = experiments[0];
    const logged = await api(`tests/${id}`);
    assert.deepEqual(logged.tests.map(({ server, bytes, status }) => [server, bytes, status]), [urls[0], urls[1], urls[0], urls[1]].map((url) => [url, 300_000, "completed"]));
    assert.ok(logged.settings["net.ipv4.tcp_rmem"] && logged.mean_bps > 0);
    await page.getByRole("link", { name: id }).click();
    await page.waitForURL(`**/tests/${id}`);
    await page.getByLabel("Rates in").selectOption("kB");
    await page.waitForURL("**units=kB");
    const mean = logged.hosts[0].mean_bps / 8e3;
    const rate = await hosts.locator('[data-name="Mean ± standard error"]').first().innerText();
    assert.ok(rate.includes(" ± ") && rate.includes(" kB/s") && Math.abs(parseFloat(rate.replace(/^[^0-9]*/, "")) / mean - 1) < 0.01, `${rate} for ${mean}`);
    assert.equal(await page.getByRole("region", { name: "Tests", exact: true }).getByRole("rowheader").count(), 4);
    await page.getByText("Settings in force").click();
    await fine(page, "a log");
    await page.goto(`${served().url}history`);
    await page.locator(".badge").getByText("logged", { exact: true }).waitFor();
    await page.getByRole("link", { name: new RegExp(`: ${id}$`) }).click();
    await page.waitForURL(`**/tests/${id}`);
    assert.deepEqual(complaints, []);
    await page.context().close();
  } finally {
    servers.forEach((server) => server.close());
  }
});
