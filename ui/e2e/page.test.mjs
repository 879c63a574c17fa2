// The page in a real browser, in a network namespace of its own: see scripts/page.sh.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { sampled } from "./fixtures.mjs";
import { PATIENCE, helped, serious } from "./help.mjs";
import { BINARY, server } from "./start.mjs";

const { open, post, wait, served, chrome, begin, end, tidy } = helped();
before(begin);
afterEach(tidy);
after(end);

test("the page is at most 120 kB, all of it compressed", async () => {
  const { page } = await open("");
  const first = await page.evaluate(() => performance.getEntriesByType("resource").filter(({ name }) => !name.includes("/api/")).reduce((sum, entry) => sum + entry.encodedBodySize, 0));
  assert.ok(first > 10_000 && first <= 120_000, `${first} bytes`);
  await page.context().close();
});

test("by keyboard: the first stop leads past the bar, and the bar to every view", async () => {
  const { page } = await open("host");
  await page.getByRole("heading", { name: "Findings" }).waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent.trim()), "To the content");
  for (const name of ["Start", "Host", "Path"]) {
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent.trim()), name);
  }
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Path" }).waitFor();
  assert.equal(new URL(page.url()).pathname, "/path");
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "Host" }).waitFor();
  await page.context().close();
});

test("the calculator gives the command line's figures as one types, and says what is wrong", async () => {
  const { page } = await open("calculator");
  const figures = page.locator(".figures");
  await figures.getByText("85.61 %", { exact: true }).waitFor();
  await figures.getByText("32 cells").waitFor();
  await page.locator("#sawtooth ~ .chart").getByText("The vertical axis doesn't begin at 0.").waitFor();
  await page.getByLabel("MTU", { exact: true }).fill("1454");
  const answer = await (await fetch(`${served().url}api/v1/overhead?encap=pppoe-llc-bridged-fcs-atm&mtu=1454`)).json();
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
  await page.getByRole("progressbar", { name: "Trials" }).waitFor(PATIENCE);
  await page.getByRole("heading", { name: "The transfer that runs" }).waitFor(PATIENCE);
  // On a busy machine no trial may count, and then there is no goodput to draw.
  const over = page.getByRole("link", { name: "Another experiment" });
  await page.getByRole("heading", { name: "Goodput" }).or(over).first().waitFor(PATIENCE);
  // Whoever loads the page again goes on watching, and so does whoever gets the address.
  assert.match(new URL(page.url()).pathname, /^\/experiment\/[0-9a-f]{12}$/);
  await page.reload();
  await over.waitFor(PATIENCE);
  const verdict = await page.locator(".verdict h2").innerText();
  await page.getByRole("heading", { name: "Evidence" }).waitFor();
  assert.deepEqual(await serious(page), []);
  await page.getByRole("link", { name: "History" }).click();
  await page.getByRole("link", { name: /^adsl: / }).first().click();
  await page.getByRole("heading", { name: verdict }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "History" }).waitFor();
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("an experiment is analysed: intervals, plateau, what TCP did over time, throughput against delay, beside another one", async () => {
  // A measured one whose figures don't depend on how busy this machine is now.
  const { id, text } = sampled("adsl");
  execFileSync(BINARY, ["journal", "import", "-"], { env: served().env, input: text });
  const { page, complaints } = await open(`analysis?of=${id}`);
  await page.getByRole("heading", { name: "Against the current setting" }).waitFor();
  await page.getByRole("heading", { name: "Plateau of rwin" }).waitFor();
  for (const part of ["#time", "#delay"]) await page.locator(`${part} ~ .chart canvas`).first().waitFor();
  const seen = page.locator("#time ~ .buttons .mono");
  const all = await seen.innerText();
  await page.getByRole("button", { name: "Zoom in" }).click();
  assert.notEqual(await seen.innerText(), all);
  const middle = await seen.innerText();
  const chart = await page.locator("#time ~ .chart").first().boundingBox();
  await page.mouse.move(chart.x + chart.width / 2, chart.y + 60);
  await page.mouse.down();
  await page.mouse.move(chart.x + chart.width / 4, chart.y + 60, { steps: 4 });
  await page.mouse.up();
  await page.waitForFunction((before) => document.querySelector("#time ~ .buttons .mono").innerText !== before, middle);
  await page.getByRole("button", { name: "All", exact: true }).click();
  await page.waitForFunction((before) => document.querySelector("#time ~ .buttons .mono").innerText === before, all);
  assert.deepEqual(await serious(page), []);
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("two experiments stand side by side", async () => {
  const request = { lab: "adsl", knobs: ["rwin"], levels: { rwin: "4x" }, trial: "300ms", budget: "4 trials" };
  await wait(await post("experiments", request));
  const { experiments } = await (await fetch(`${served().url}api/v1/journal`)).json();
  assert.ok(experiments.length >= 2);
  const { page, complaints } = await open(`analysis?of=${experiments[1].id}&with=${experiments[0].id}`);
  const table = page.getByRole("region", { name: "Two experiments, setting by setting" });
  await table.getByRole("rowheader", { name: /^rwin=5760/ }).waitFor();
  assert.ok((await table.getByRole("row").count()) >= 3);
  assert.deepEqual(await serious(page), []);
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("a black hole is found at its hop, and sizes are scanned", async () => {
  const { page, complaints } = await open("path");
  await page.getByRole("button", { name: "Probe the path" }).click();
  await page.getByRole("heading", { name: /^Packets over 1400 bytes vanish behind 198\.18\./ }).waitFor(PATIENCE);
  const hop = page.locator("#hops ~ .wide tbody tr").filter({ hasText: "black hole behind it" });
  assert.equal(await hop.getByRole("rowheader").innerText(), "1");
  await page.locator("#sawtooth ~ .chart canvas").waitFor();
  await page.getByText("tunnel or VPN").first().waitFor();
  await page.getByRole("button", { name: "Scan sizes" }).click();
  await page.locator("#scan ~ .pair canvas").nth(1).waitFor(PATIENCE);
  assert.deepEqual(await serious(page), []);
  await page.getByLabel("Where", { exact: true }).selectOption("target");
  await page.getByLabel("Host", { exact: true }).fill("127.0.0.1");
  await page.getByRole("button", { name: "Probe the path" }).click();
  await page.getByRole("alert").getByText("needs the token").waitFor();
  assert.deepEqual(complaints.filter((complaint) => !complaint.includes("401")), []);
  await page.context().close();
});

test("the model answers as one drags", async () => {
  const { page, complaints } = await open("what-if");
  const goodput = page.locator(".figure").filter({ hasText: /^Goodput/ }).locator("dd");
  await goodput.waitFor();
  const free = await goodput.innerText();
  await page.getByLabel("RWIN", { exact: true }).fill("60");
  await page.waitForFunction((before) => document.querySelector(".figure dd").innerText !== before, free);
  // A window holds a transfer to what it carries in each round trip.
  const ask = async (set) => (await (await fetch(`${served().url}api/v1/predict?rate=100mbit&rtt=80ms&size=3MB&set=${set}`)).json()).arms[1].goodput_bps;
  assert.ok((await ask("rwin=64KiB")) < (65536 * 8) / 0.08);
  await page.getByLabel("RWIN", { exact: true }).focus();
  await page.keyboard.press("ArrowRight");
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("a path is drawn, started, used and taken down", async () => {
  const { page, complaints } = await open("lab");
  const rtt = page.locator(".figure").filter({ hasText: /^RTT/ }).locator("dd");
  await rtt.waitFor();
  const before = await rtt.innerText();
  await page.getByLabel("Delay down", { exact: true }).first().fill("30ms");
  await page.waitForFunction((before) => document.querySelector(".figure dd").innerText !== before, before);
  await page.getByLabel("Delay down", { exact: true }).first().fill("soon");
  await page.getByRole("alert").getByText("delay").waitFor();
  assert.ok(await page.getByRole("button", { name: "Start it" }).isDisabled());
  await page.getByLabel("Delay down", { exact: true }).first().fill("20ms");
  await page.getByRole("alert").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Remove link 2" }).click();
  await page.getByRole("button", { name: "Start it" }).click();
  await page.getByRole("heading", { name: /^The lab is up/ }).waitFor(PATIENCE);
  await page.getByLabel("How much", { exact: true }).fill("500kB");
  await page.getByRole("button", { name: "Run it" }).click();
  await page.getByRole("heading", { name: "The download over time" }).waitFor(PATIENCE);
  await page.getByLabel("Workload", { exact: true }).selectOption("ping");
  await page.getByRole("button", { name: "Run it" }).click();
  await page.getByText("10 packets transmitted, 10 received").waitFor(PATIENCE);
  assert.deepEqual(await serious(page), []);
  await page.getByRole("button", { name: "Take the lab down" }).click();
  await page.getByText("The lab is down").waitFor(PATIENCE);
  assert.deepEqual(complaints.filter((complaint) => !complaint.includes("400")), []);
  await page.context().close();
});

test("behind TLS and a password the page works, and nothing is answered without", async () => {
  const dir = mkdtempSync(join(tmpdir(), "windtunnel-tls-"));
  const [cert, key, password] = ["cert.pem", "key.pem", "password"].map((name) => join(dir, name));
  execFileSync("openssl", ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=lab", "-days", "2", "-keyout", key, "-out", cert], { stdio: "ignore" });
  writeFileSync(password, "horse battery\n", { mode: 0o600 });
  const closed = await server("--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key, "--password-file", password);
  try {
    const url = closed.url.replace("localhost", "127.0.0.1");
    const stranger = await chrome().newContext({ ignoreHTTPSErrors: true });
    for (const path of ["", "api/v1/health"]) assert.equal((await stranger.request.get(url + path)).status(), 401);
    const known = await (await chrome().newContext({ ignoreHTTPSErrors: true, httpCredentials: { username: "me", password: "horse battery" } })).newPage();
    await known.goto(`${url}path`);
    await known.getByRole("button", { name: "Probe the path" }).click();
    await known.locator("#hops").waitFor(PATIENCE);
    await stranger.close();
    await known.context().close();
  } finally {
    await closed.end();
    rmSync(dir, { recursive: true });
  }
});

test("a running experiment can be stopped, and keeps what was measured", async () => {
  const { page } = await open("experiment");
  await page.getByLabel("Each trial", { exact: true }).fill("500ms");
  await page.getByRole("button", { name: "Start" }).click();
  await page.getByRole("progressbar", { name: "Trials" }).waitFor(PATIENCE);
  await page.getByRole("button", { name: /Stop/ }).click();
  await page.getByRole("link", { name: "Another experiment" }).waitFor(PATIENCE);
  const [last] = await (await fetch(`${served().url}api/v1/experiments`)).json();
  const journal = await (await fetch(`${served().url}api/v1/journal`)).json();
  const kept = journal.experiments.find(({ id }) => id === last.experiment);
  assert.notEqual(kept.state, "running");
  await page.context().close();
});

test("a change needs the token, is applied, counted down, undone, and stands in the history", async () => {
  const { page } = await open("host");
  await page.getByRole("heading", { name: "Change", exact: true }).waitFor();
  const sack = async () => {
    const { knobs } = await (await fetch(`${served().url}api/v1/settings`)).json();
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
  await page.goto(`${served().url}host#token=${served().token}`);
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
