// Ways through the page: addresses, Back, what is kept, what is said when something is gone.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { after, afterEach, before, test } from "node:test";
import { fine, helped, LOOKS, PATIENCE, settled } from "./help.mjs";
import { capture } from "./capture.mjs";
import { sampled } from "./fixtures.mjs";
import { BINARY, server } from "./start.mjs";

const { open, post, wait, served, begin, end, tidy } = helped();
before(begin);
afterEach(tidy);
after(end);

const SHORT = { lab: "adsl", knobs: ["rwin"], levels: { rwin: "4x" }, trial: "300ms", budget: "4 trials" };
const journal = async () => (await (await fetch(`${served().url}api/v1/journal`)).json()).experiments;
const path = (page) => new URL(page.url()).pathname + new URL(page.url()).search;
/** Waits for the address, which is written a moment after one has typed. */
const addressed = (page, part) => page.waitForFunction((part) => location.href.includes(part), part);

test("the start leads to a rehearsal, a measurement, a path and a file, and an unknown address says that it is", async () => {
  const { page, complaints } = await open("");
  await page.getByRole("heading", { level: 1, name: "Make a connection faster" }).waitFor();
  await settled(page);
  await fine(page, "start");
  await page.getByLabel("My line", { exact: true }).selectOption("transatlantic");
  await page.getByRole("button", { name: "Rehearse" }).click();
  await page.getByRole("heading", { level: 1, name: "Experiment" }).waitFor();
  assert.equal(path(page), "/experiment?lab=transatlantic");
  await page.getByText("50 settings").or(page.getByText(/settings, trials of/)).first().waitFor();
  await page.goBack();
  await page.getByLabel("Address of a large file").fill("https://example.org/x");
  await page.getByRole("button", { name: "Measure" }).click();
  assert.equal(await page.getByLabel("Server", { exact: true }).inputValue(), "https://example.org/x");
  await page.goBack();
  await page.getByLabel(/^Host/).fill("example.org");
  await page.getByRole("button", { name: "Look" }).click();
  assert.equal(await page.getByLabel("Host", { exact: true }).inputValue(), "example.org");
  await page.goto(`${served().url}no/such?page`);
  await page.getByText("There is no page /no/such here.").waitFor();
  await page.getByRole("link", { name: "Go to the start" }).click();
  await page.getByRole("heading", { level: 1, name: "Make a connection faster" }).waitFor();
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("sliders, fields and drawings are in the address: a reload and a colleague find them as they are", async () => {
  const { page } = await open("what-if");
  const goodput = page.locator(".figure").filter({ hasText: /^Goodput/ }).locator("dd");
  await goodput.waitFor();
  const free = await goodput.innerText();
  await page.getByLabel("RWIN", { exact: true }).fill("60");
  await page.getByLabel("Loss", { exact: true }).fill("20");
  await page.getByLabel("Congestion control", { exact: true }).selectOption("reno");
  await addressed(page, "rwin=60");
  await addressed(page, "cc=reno");
  await page.waitForFunction((before) => document.querySelector(".figure dd").innerText !== before, free);
  await page.reload();
  assert.equal(await page.getByLabel("RWIN", { exact: true }).inputValue(), "60");
  assert.equal(await page.getByLabel("Loss", { exact: true }).inputValue(), "20");
  assert.equal(await page.getByLabel("Congestion control", { exact: true }).inputValue(), "reno");
  await page.getByText("As a command").click();
  await page.getByText(/windtunnel predict --rate .* --set cc=reno/).waitFor();

  await page.getByRole("link", { name: "Calculator" }).click();
  await page.getByLabel("MTU", { exact: true }).fill("1400");
  await addressed(page, "mtu=1400");
  await page.reload();
  assert.equal(await page.getByLabel("MTU", { exact: true }).inputValue(), "1400");
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "What if" }).waitFor();
  assert.equal(await page.getByLabel("RWIN", { exact: true }).inputValue(), "60");

  await page.goto(`${served().url}lab`);
  await page.getByLabel("Delay down", { exact: true }).first().fill("31ms");
  await addressed(page, "31ms");
  const drawn = page.url();
  const colleague = await open("host");
  await colleague.page.goto(drawn);
  assert.equal(await colleague.page.getByLabel("Delay down", { exact: true }).first().inputValue(), "31ms");
  await colleague.page.context().close();

  await page.goto(`${served().url}experiment`);
  await page.getByLabel("cc", { exact: true }).uncheck();
  await page.getByLabel("Levels of rwin", { exact: true }).fill("4x,64x");
  await addressed(page, "vary=rwin");
  await page.reload();
  assert.equal(await page.getByLabel("Levels of rwin", { exact: true }).inputValue(), "4x,64x");
  assert.equal(await page.getByLabel("cc", { exact: true }).isChecked(), false);
  // Two groups of fields changed at the same moment: the address has both, and so has Back.
  await page.getByLabel("Path", { exact: true }).waitFor();
  await page.evaluate(() => {
    const field = (name) => document.getElementById([...document.querySelectorAll("label")].find(({ textContent }) => textContent.trim() === name).htmlFor);
    const change = (name, value, event) => {
      field(name).value = value;
      field(name).dispatchEvent(new Event(event, { bubbles: true }));
    };
    change("Path", "lte", "change");
    change("Budget", "40 trials", "input");
    change("Goal", "delay", "change");
  });
  await page.getByText("windtunnel tune --lab lte --knobs rwin,mtu --levels rwin=4x,64x --goal delay --budget '40 trials'", { exact: true }).waitFor({ state: "attached" });
  for (const part of ["lab=lte", "budget=40+trials", "goal=delay"]) await addressed(page, part);
  await page.getByRole("link", { name: "Calculator" }).click();
  await page.goBack();
  assert.equal(await page.getByLabel("Budget", { exact: true }).inputValue(), "40 trials");
  assert.equal(await page.getByLabel("Path", { exact: true }).inputValue(), "lte");
  await page.context().close();
});

test("a shipped path that is drawn anew keeps what can't be edited, named, until it is left out", async () => {
  const { page, complaints } = await open("lab");
  await page.getByLabel("Begin with", { exact: true }).selectOption("leo-satellite");
  const rtt = page.locator(".figure").filter({ hasText: /^RTT/ }).locator("dd");
  const shipped = await (await fetch(`${served().url}api/v1/lab/presets/leo-satellite`)).json();
  await page.waitForFunction((ms) => document.querySelector(".figure dd")?.innerText === ms, `${(shipped.path.rtt_us / 1e3).toFixed(1)} ms`);
  const kept = page.getByRole("list", { name: "What link 1 does besides" });
  await kept.getByText("Losses that aren't independent, down").waitFor();
  await kept.getByText("gilbert-elliott").waitFor();
  assert.equal(await kept.getByRole("listitem").count(), 5);
  await fine(page, "a satellite in the lab");
  await page.getByRole("button", { name: "As a file" }).click();
  await page.getByLabel("The path as a scenario file").getByText("gilbert-elliott").waitFor();
  for (const way of ["down", "up"]) await page.getByRole("button", { name: `Leave it out: Delay that varies, ${way}` }).click();
  await page.waitForFunction((ms) => document.querySelector(".figure dd")?.innerText !== ms, await rtt.innerText());
  assert.equal(await kept.getByRole("listitem").count(), 3);
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("a run and a report have addresses, Back leads to where one was, and what is analysed stays the same one", async () => {
  await wait(await post("experiments", SHORT));
  await wait(await post("experiments", { ...SHORT, comment: "with <b>more</b> rounds" }));
  const [second, first] = await journal();
  const { page, complaints } = await open("analysis");
  await page.getByRole("heading", { name: "Over time" }).waitFor();
  assert.equal(path(page), `/analysis?of=${second.id}`);
  await page.getByLabel("Experiment", { exact: true }).selectOption(first.id);
  await page.waitForURL(`**/analysis?of=${first.id}`);
  await page.getByLabel("Compare with", { exact: true }).selectOption(second.id);
  await page.waitForURL(`**/analysis?of=${first.id}&with=${second.id}`);
  await page.getByRole("heading", { name: "Side by side" }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { name: "Side by side" }).waitFor({ state: "detached" });
  await page.goBack();
  assert.equal(path(page), `/analysis?of=${second.id}`);
  await page.getByRole("link", { name: /^Its report/ }).click();
  await page.waitForURL(`**/report/${second.id}`);
  await page.getByRole("heading", { name: "Settings", exact: true }).waitFor();
  const kept = async (name) => {
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name, exact: true }).or(page.getByRole("button", { name, exact: true })).click()]);
    return [file.suggestedFilename(), readFileSync(await file.path(), "utf8")];
  };
  const [html, report] = await kept("Download HTML");
  assert.equal(html, `${second.id}.html`);
  assert.match(report, /^<!doctype html>[^]*<svg/i);
  const [, table] = await kept("Download CSV");
  assert.match(table.split("\n")[0], /,/);
  assert.ok(table.includes("rwin"));
  assert.equal(JSON.parse((await kept("Download JSON"))[1]).id, second.id);
  await page.getByText("As a command").click();
  await page.getByLabel("The same as a command").getByText(`windtunnel report ${second.id} --full`).waitFor();
  await fine(page, "a report");
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "Analysis" }).waitFor();
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("the history has verdict, workload and comment, is searched and sorted, and an experiment is deleted with the token only", async () => {
  const before = await journal();
  const { page } = await open("history");
  const table = page.getByRole("region", { name: "Experiments" }).last();
  await table.getByText("with <b>more</b> rounds").waitFor();
  await table.getByText("bulk").first().waitFor();
  await fine(page, "history");
  await page.getByLabel("Search", { exact: true }).fill("more rounds");
  await page.getByText(`1 of ${before.length} experiments`).waitFor();
  await addressed(page, "q=more");
  await page.getByLabel("Order", { exact: true }).selectOption("trials");
  await page.waitForURL(/sort=trials/);
  await table.getByRole("link").click();
  await page.getByRole("button", { name: "Delete …" }).click();
  await page.getByRole("button", { name: "Delete it for good" }).click();
  await page.getByRole("alert").getByText("deleting an experiment needs the token").waitFor();
  assert.equal((await journal()).length, before.length);
  await page.getByLabel("Token", { exact: true }).fill(served().token);
  await page.getByRole("button", { name: "Delete it for good" }).click();
  await page.waitForURL("**/history");
  assert.equal((await journal()).length, before.length - 1);
  await page.goBack();
  await page.goBack();
  assert.equal(await page.getByLabel("Search", { exact: true }).inputValue(), "more rounds");
  await page.context().close();
});

test("ten thousand experiments are searched and scrolled without a long pause", async () => {
  const { page } = await open("calculator");
  const one = (place) => ({ id: `20261123-0000-x-${place}`, target: place % 7 ? "adsl" : "transatlantic", tunnel: "lab", state: "finished", started_unix_us: 1.7e15 + place * 1e9, comment: place % 100 ? "" : `note ${place}`, trials: place % 50, workload: "bulk", verdict: place % 3 ? "no-difference" : "faster", answer: "rwin=1 is faster.", change_bp: place % 3 ? null : place });
  const experiments = Array.from({ length: 10_000 }, (_, place) => one(place));
  await page.route("**/api/v1/journal", (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify({ schema_version: 1, experiments }) }));
  await page.getByRole("link", { name: "History" }).click();
  await page.getByText("10000 experiments").waitFor();
  const debug = await page.context().newCDPSession(page);
  await debug.send("Performance.enable", { timeDomain: "threadTicks" });
  const computed = async () => (await debug.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value;
  // What the page's own thread computes, whatever else the machine does meanwhile.
  const begun = await computed();
  for (const [at, text] of ["n", "no", "not", "note", "note 9900"].entries()) {
    await page.getByLabel("Search", { exact: true }).fill(text);
    await page.getByText(at < 3 ? /experiments/ : at === 3 ? "100 of 10000 experiments" : "1 of 10000 experiments").waitFor();
  }
  assert.ok((await computed()) - begun < 2.5, `${(await computed()) - begun} s for five letters`);
  await page.getByLabel("Search", { exact: true }).fill("");
  await page.getByText("10000 experiments").waitFor();
  const rows = () => page.locator("#experiments ~ .wide tbody tr").count();
  const first = await rows();
  assert.ok(first <= 200, `${first} rows at once`);
  for (let page_ = 0; page_ < 4; page_++) await page.mouse.wheel(0, 20_000);
  await page.waitForFunction((before) => document.querySelectorAll("#experiments ~ .wide tbody tr").length > before, first);
  await page.context().close();
});

test("a change that waits is seen on every view with its seconds, a wrong token can be corrected, and the end is told", async () => {
  const { page } = await open("host");
  await page.getByLabel("Setting", { exact: true }).selectOption("sack");
  await page.getByLabel("New value", { exact: true }).fill("off");
  await page.getByRole("button", { name: "Show the plan" }).click();
  const token = page.getByLabel("Token", { exact: true });
  await token.fill("0123456789abcdef0123456789abcdef");
  await page.getByRole("button", { name: /^Apply/ }).click();
  await page.getByRole("alert").getByText("this isn't the token of this server").waitFor();
  await token.fill(served().token);
  await page.getByRole("button", { name: /^Apply/ }).click();
  const bar = page.getByRole("heading", { name: /^Change \d+ is put back in \d+ s$/ });
  await bar.waitFor();
  for (const view of ["Lab", "What if", "History", "Start"]) {
    await page.getByRole("link", { name: view, exact: true }).click();
    await bar.waitFor();
    assert.ok(await bar.isVisible());
  }
  await page.waitForFunction(() => /^\d+ s to confirm/.test(document.title));
  const other = await open("calculator", LOOKS[2]);
  await other.page.getByRole("heading", { name: /is put back in/ }).waitFor();
  await fine(other.page, "a change that waits");
  await page.getByRole("button", { name: "Undo now" }).click();
  await page.getByRole("status").getByText(/is undone: everything is as before/).waitFor();
  await other.page.getByRole("heading", { name: /is put back in/ }).waitFor({ state: "detached" });
  await other.page.context().close();
  await page.context().close();
});

test("a server that goes away is said, and mended when it returns: the experiment's address leads to what was measured", async () => {
  const own = await server();
  try {
    const { page } = await open("experiment?vary=rwin%3D4x&trial=500ms&budget=200+trials", LOOKS[0], own.url);
    await page.getByRole("button", { name: "Start" }).click();
    await page.waitForURL(/\/experiment\/[0-9a-f]+\?of=/, PATIENCE);
    const id = new URL(page.url()).searchParams.get("of");
    await page.getByText("Last trial").waitFor(PATIENCE);
    const other = await open("history", LOOKS[2], own.url);
    await settled(other.page);
    await own.stop();
    await page.getByRole("alert").getByText("The connection to windtunnel web is lost").waitFor();
    await page.getByRole("link", { name: "What if" }).click();
    await page.goBack();
    await own.again();
    await page.waitForURL(`**/report/${id}`, PATIENCE);
    await page.getByText("The connection to windtunnel web is lost").waitFor({ state: "detached" });
    await page.getByRole("heading", { name: "Settings", exact: true }).waitFor();
    await other.page.getByText("The connection to windtunnel web is lost").waitFor({ state: "detached" });
    await other.page.getByText("1 experiment", { exact: true }).waitFor();
    await page.context().close();
    await other.page.context().close();
  } finally {
    await own.end();
  }
});

test("an experiment that somebody else runs on this machine is said beside one's own", async () => {
  // What every experiment announces (crates/sys/src/presence.rs), without the load of one; of several names the first in order is told.
  const announce = "import os, socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.bind(f'\\0windtunnel-measures/{os.getpid()}/0-neighbour'); print(flush=True); sys.stdin.read()";
  const other = spawn("python3", ["-c", announce], { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => other.once("exit", resolve));
  try {
    await new Promise((resolve, reject) => {
      other.stdout.once("data", resolve);
      other.once("exit", () => reject(new Error("nothing announces itself")));
    });
    const { page } = await open("experiment?vary=rwin%3D4x&trial=300ms&budget=4+trials");
    await page.getByRole("button", { name: "Start" }).click();
    await page.getByRole("status").getByText(/0-neighbour runs on this machine, too: each disturbs the other/).first().waitFor(PATIENCE);
    await page.getByRole("link", { name: "Another experiment" }).waitFor(PATIENCE);
    await page.context().close();
  } finally {
    other.stdin.end();
    await ended;
  }
});

test("a capture that is dropped says who is to blame, a table whether a difference is real, and nonsense what is wrong", async () => {
  const { page, complaints } = await open("file");
  const drop = (name, buffer) => page.getByLabel("Capture or table").setInputFiles({ name, mimeType: "application/octet-stream", buffer: Buffer.from(buffer) });
  await drop("slow.pcap", capture());
  await page.getByRole("heading", { name: "To blame: the client" }).waitFor();
  await page.getByText(/window/).first().waitFor();
  await page.getByRole("region", { name: "Connections" }).last().getByText("10.0.0.1").first().waitFor();
  await fine(page, "a capture");
  await drop("runs.csv", "rwin,r1,r2,r3,r4,r5,r6,r7,r8\n64KiB,5.1,5.2,5.0,5.15,5.05,5.12,5.11,5.08\n128KiB,6.6,6.5,6.7,6.6,6.62,6.58,6.71,6.55\n");
  await page.getByRole("heading", { name: /128KiB/ }).waitFor();
  await page.locator("img.picture").first().evaluate((image) => image.decode());
  await fine(page, "a table");
  await drop("x.csv", "a,b\n1\n");
  await page.getByRole("alert").waitFor();
  assert.ok(!(await page.getByRole("alert").innerText()).includes("--"), "no flags in a page");
  assert.deepEqual(complaints.filter((complaint) => !complaint.includes("400")), []);
  await page.goto(served().url);
  await drop("slow.pcap", capture());
  await page.getByRole("heading", { name: "To blame: the client" }).waitFor();
  assert.equal(path(page), "/file");
  await page.context().close();
});

test("a black hole is the headline, nothing advises packets that vanish, and the probe has an address", async () => {
  const { page } = await open("path");
  await page.getByRole("button", { name: "Probe the path" }).click();
  const headline = page.getByRole("heading", { name: /^Packets over 1400 bytes vanish behind 198\.18\.\d+\.\d+$/ });
  await headline.waitFor(PATIENCE);
  assert.ok(await page.locator(".verdict.bad").isVisible());
  await page.getByText(/best MTU is/).waitFor();
  assert.ok(Number((await page.getByText(/best MTU is/).innerText()).match(/best MTU is (\d+)/)[1]) <= 1400);
  assert.match(path(page), /run=[0-9a-f]{12}/);
  await fine(page, "a black hole");
  await page.reload();
  await headline.waitFor();
  await page.goBack();
  await headline.waitFor({ state: "detached" });
  await page.context().close();
});

test("settings have a row each while they are measured, with the one that runs and the time that is left, and trials can be kept", async () => {
  const { page, complaints } = await open("experiment?vary=rwin%3D2x%2C4x%2C8x%2C16x%2C32x%2C64x&trial=500ms&budget=60+trials");
  await page.getByRole("button", { name: "Start" }).click();
  const rows = page.getByRole("list", { name: /^Goodput of \d+ trials of 7 settings/ });
  await rows.waitFor(PATIENCE);
  assert.equal(await rows.getByRole("listitem").count(), 7);
  await page.getByText(/trials; about .* left/).waitFor();
  await page.getByRole("listitem").getByText("running", { exact: true }).first().waitFor(PATIENCE);
  await page.getByRole("heading", { name: /^The transfer that runs: / }).waitFor(PATIENCE);
  await page.getByRole("list", { name: /^Evidence for 6 settings/ }).waitFor(PATIENCE);
  await fine(page, "a live experiment");
  const [file] = await Promise.all([page.waitForEvent("download"), page.locator("#goodput ~ button").click()]);
  assert.match(readFileSync(await file.path(), "utf8"), /^trial,setting,goodput,bit\/s\n1,/);
  await page.getByRole("button", { name: /Stop/ }).click();
  await page.getByRole("link", { name: "Another experiment" }).waitFor(PATIENCE);
  await page.getByRole("link", { name: "Another experiment" }).click();
  assert.equal(await page.getByLabel("Levels of rwin", { exact: true }).inputValue(), "2x,4x,8x,16x,32x,64x");
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("over time three charts are read at one place, no rate is above the line's, and distributions are laid over each other", async () => {
  // Measured ones, whose trials count however busy this machine is now; the second is the first by another name.
  const { id, text } = sampled("adsl");
  const other = `${id.slice(0, -4)}0123`;
  for (const one of [text, text.replaceAll(id, other)]) execFileSync(BINARY, ["journal", "import", "-"], { env: served().env, input: one });
  const { page, complaints } = await open(`analysis?of=${id}`);
  const charts = page.locator("#time ~ .chart");
  await charts.nth(2).locator("canvas").waitFor();
  await page.getByRole("img", { name: /^Distribution of goodput over the trials of \d settings/ }).waitFor();
  await charts.nth(0).locator(".u-over").hover();
  await charts.nth(2).getByText(/^at \d+\.\d\d s: .*RTT, ms/).waitFor();
  const places = await charts.locator(".read").allInnerTexts();
  assert.equal(new Set(places.map((text) => text.match(/^at ([\d.]+) s/)[1])).size, 1, places.join(" | "));
  const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: /^CSV: Goodput over time/ }).click()]);
  const rates = readFileSync(await file.path(), "utf8").trim().split("\n").slice(1).map((line) => Number(line.split(",")[1]));
  const line = (await (await fetch(`${served().url}api/v1/lab/presets/adsl`)).json()).physical_goodput_bps.down / 1e6;
  assert.ok(Math.max(...rates) > line / 2 && Math.max(...rates) < line * 1.25, `${Math.max(...rates)} Mbit/s over ${line}`);
  const [png] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: /^PNG: Goodput over time/ }).click()]);
  assert.equal(readFileSync(await png.path()).subarray(1, 4).toString(), "PNG");
  await page.getByRole("img", { name: /^Distribution of goodput over the trials of \d settings/ }).waitFor();
  await page.getByLabel("Lay over it", { exact: true }).selectOption(other);
  await page.getByRole("img", { name: /^Distribution of goodput over the trials of 2 experiments/ }).waitFor();
  await page.waitForURL(/also=/);
  await fine(page, "an analysis");
  await page.getByRole("button", { name: `Remove ${other}` }).click();
  await page.getByRole("img", { name: /over the trials of \d settings/ }).waitFor();
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("on a phone the answers stay beside the sliders, and every view is in the bar", async () => {
  for (const look of LOOKS.slice(2)) {
    const { page } = await open("what-if", look);
    const goodput = page.locator(".figure").filter({ hasText: /^Goodput/ });
    await goodput.waitFor();
    for (const name of ["Rate", "RTT", "Loss"]) {
      await page.getByLabel(name, { exact: true }).evaluate((slider) => slider.scrollIntoView({ block: "center" }));
      const box = await goodput.boundingBox();
      assert.ok(box.y >= 0 && box.y + box.height <= look.viewport.height, `${name}: the goodput is at ${box.y}`);
    }
    for (const link of await page.getByRole("navigation").getByRole("link").all()) {
      const box = await link.boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= look.viewport.width, await link.innerText());
    }
    await page.context().close();
  }
});

test("doctor says what works and what to do", async () => {
  const { page, complaints } = await open("doctor");
  await page.getByRole("heading", { name: /^The lab (works|doesn't work)/ }).waitFor();
  const { checks } = await (await fetch(`${served().url}api/v1/doctor`)).json();
  const table = page.getByRole("region", { name: "Checks" });
  assert.equal(await table.getByRole("row").count(), checks.length + 1);
  await fine(page, "doctor");
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("congestion controls are listed, each has an address with what it does, and how it is loaded stands there", async () => {
  const { page, complaints } = await open("host");
  await page.getByRole("link", { name: "Congestion controls" }).click();
  await page.getByRole("heading", { level: 1, name: "Congestion controls" }).waitFor();
  const list = await (await fetch(`${served().url}api/v1/cc`)).json();
  const own = page.getByRole("region", { name: "Windtunnel's own congestion controls" });
  await own.getByRole("link", { name: "chd@freebsd-hz100", exact: true }).waitFor();
  assert.equal(await own.getByRole("row").count(), list.ours.length + 1);
  assert.equal(await page.getByRole("region", { name: "Congestion controls in the kernel" }).getByRole("row").count(), list.kernel.length + 1);
  await fine(page, "congestion controls");
  await own.getByRole("link", { name: "chd@freebsd-hz100", exact: true }).click();
  await page.waitForURL("**/controls/chd%40freebsd-hz100");
  await page.getByRole("heading", { name: /^chd@freebsd-hz100: CAIA-Hamilton/ }).waitFor();
  const parameters = page.getByRole("region", { name: "Parameters of chd@freebsd-hz100" });
  assert.equal(await parameters.getByRole("row").filter({ hasText: "queue-threshold" }).locator("td").first().innerText(), "200ms");
  await fine(page, "a congestion control");
  await page.getByText("As a command").first().click();
  await page.getByText("sudo windtunnel cc load chd@freebsd-hz100 --boot").waitFor();
  await page.reload();
  await parameters.waitFor();
  assert.deepEqual(complaints, []);
  await page.goto(`${served().url}controls/bic`);
  await page.getByRole("alert").getByText("bic").first().waitFor();
  await page.context().close();
});

test("stacks are listed with what is missing and what isn't documented", async () => {
  const { page, complaints } = await open("lab");
  await page.getByRole("link", { name: "Other TCP/IP stacks" }).click();
  const table = page.getByRole("region", { name: "Stacks", exact: true });
  await table.getByRole("rowheader", { name: "smoltcp", exact: true }).waitFor();
  const { stacks, profiles } = await (await fetch(`${served().url}api/v1/stacks`)).json();
  assert.equal(await table.getByRole("row").count(), stacks.length + 1);
  const old = page.getByRole("region", { name: "Old stacks" });
  assert.equal(await old.getByRole("row").count(), profiles.length + 1);
  assert.ok(profiles.some(({ mss }) => mss === "unknown"));
  await old.getByText("not documented").first().waitFor();
  await old.getByText("8192 bytes").first().waitFor();
  await fine(page, "stacks");
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("comparisons of congestion controls and of stacks have a report with the answer first and a row for each", async () => {
  const path = { base_rtt_us: 40_000, capacity_bps: 6_790_000 };
  const control = (name, mean, against_first) => ({ name, variant: "kernel", goodput_kBps: { mean, runs: [mean, mean] }, against_first, t90_s: 0.4, recovery_s: null, p95_queue_ms: 71.4, retransmit_share: 0.004, invalid_trials: 0 });
  const controls = {
    schema_version: 1, id: "c", lab: "adsl", trial_s: 5, path,
    verdict: { difference_shown: true, text: "bbr is 10 % faster than reno." },
    algorithms: [control("reno", 700, null), control("bbr", 770, { ratio: 1.1, low: 1.05, high: 1.15 })],
  };
  const stack = (name) => ({ name, version: "1", integrity: "ok", findings: [], failures: [] });
  const stacks = {
    schema_version: 1, id: "s", lab: "adsl", path, stacks: [stack("linux"), stack("smoltcp")],
    verdicts: [{ workload: "bulk", a: "linux", b: "smoltcp", kind: "not-shown", rounds: 4, ratio: null, low: null, high: null, text: "No difference is shown at bulk." }],
  };
  const { page, complaints } = await open("calculator");
  for (const [name, answer] of Object.entries({ controls, stacks })) {
    await page.route(`**/api/v1/reports/${name}`, (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify(answer) }));
  }
  await page.goto(`${served().url}report/controls`);
  await page.getByRole("heading", { name: "A difference is shown", exact: true }).waitFor();
  await page.getByText("bbr is 10 % faster than reno.").waitFor();
  const table = page.getByRole("region", { name: "Congestion controls that were compared" });
  const bbr = table.getByRole("row").filter({ hasText: "bbr" });
  assert.deepEqual((await bbr.locator("td").allInnerTexts()).slice(0, 2), ["6.16 Mbit/s", "×1.10 (1.05 to 1.15)"]);
  await fine(page, "a comparison of congestion controls");
  await page.goto(`${served().url}report/stacks`);
  await page.getByRole("heading", { name: "No difference is shown", exact: true }).waitFor();
  assert.equal(await page.getByRole("region", { name: "Stacks that were compared" }).getByRole("row").count(), 3);
  await page.getByRole("region", { name: "Pairs" }).getByText("linux against smoltcp").waitFor();
  await fine(page, "a comparison of stacks");
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("congestion controls and stacks are compared from the page, with the same as a command, and what came of it is kept", async () => {
  const { page, complaints } = await open("controls?algorithms=cubic+reno&rounds=2&trial=500ms");
  await page.getByText("As a command").last().click();
  await page.getByText("windtunnel cc compare --lab adsl --algorithms cubic,reno --rounds 2 --trial 500ms", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Compare congestion controls", exact: true }).click();
  await page.getByText(/^\d of 4 trials, round \d of 2/).waitFor(PATIENCE);
  await page.getByRole("region", { name: "Congestion controls that were compared" }).waitFor(PATIENCE);
  await page.getByRole("heading", { name: /^(A|No) difference is shown$/ }).waitFor();
  await fine(page, "a comparison that was begun here");
  await page.reload();
  await page.getByRole("region", { name: "Congestion controls that were compared" }).getByRole("row").filter({ hasText: "reno" }).waitFor(PATIENCE);
  const link = page.locator('a[href^="/report/"]').last();
  const id = await link.innerText();
  await link.click();
  await page.waitForURL(`**/report/${id}`);
  await page.getByRole("heading", { name: /^(A|No) difference is shown$/ }).waitFor();

  await page.goto(`${served().url}stacks?stacks=linux+smolctp&workloads=transactions:count=3&rounds=1&scripts=no`);
  await page.getByText("As a command").last().click();
  await page.getByText("windtunnel stacks compare --lab ethernet-hub --stacks linux,smolctp --workloads transactions:count=3 --rounds 1 --no-conformance", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Compare stacks", exact: true }).click();
  await page.getByRole("alert").getByText(/smoltcp/).first().waitFor(PATIENCE);
  const { stacks } = await (await fetch(`${served().url}api/v1/stacks`)).json();
  const ready = stacks.some(({ name, built }) => name === "smoltcp" && built);
  await page.getByRole("textbox", { name: "Stacks", exact: true }).fill("linux-direct smoltcp:rwin=8KiB:mss=500");
  await page.getByText(/--stacks linux-direct,smoltcp:rwin=8KiB:mss=500 /).waitFor();
  await page.getByRole("button", { name: "Compare stacks", exact: true }).click();
  if (ready) await page.getByRole("region", { name: "Stacks that were compared" }).or(page.getByRole("alert").getByText(/TUN/)).first().waitFor(PATIENCE);
  assert.deepEqual(complaints, []);
  await page.context().close();
});
