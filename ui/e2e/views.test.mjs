// First windows, page waterfalls, goodput against delay, and what can be kept of a chart.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { after, afterEach, before, test } from "node:test";
import { sampled } from "./fixtures.mjs";
import { fine, helped, PATIENCE, settled } from "./help.mjs";
import { BINARY, server } from "./start.mjs";

const { open, post, wait, served, begin, end, tidy } = helped();
before(begin);
afterEach(tidy);
after(end);

const journal = async () => (await (await fetch(`${served().url}api/v1/journal`)).json()).experiments;
const report = async (id) => (await fetch(`${served().url}api/v1/reports/${id}`)).json();
const path = (page) => new URL(page.url()).pathname + new URL(page.url()).search;
/** What a click gives to keep: its name and its text. */
const kept = async (page, button) => {
  const [file] = await Promise.all([page.waitForEvent("download"), button.click()]);
  return [file.suggestedFilename(), readFileSync(await file.path(), "utf8")];
};
/** Whether a file is a picture that a browser draws: its size, or null. */
const drawn = (page, text) =>
  page.evaluate(
    async (text) => {
      const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
      if (parsed.querySelector("parsererror")) return null;
      return { width: Number(parsed.documentElement.getAttribute("width")), texts: [...parsed.querySelectorAll("text")].map((node) => node.textContent), dots: parsed.querySelectorAll("circle").length, bars: parsed.querySelectorAll("rect").length };
    },
    text,
  );

test("a scan of sizes says how far it is", async () => {
  const { page } = await open("calculator");
  const run = { id: "feedfacecafe", kind: "probe", request: { kind: "scan" }, started_unix_us: 0, experiment: null, end: null };
  const stream = [["scanning", { packets: 4800, per_second: 80 }], ["scanned", { packets: 1200 }]];
  await page.route("**/api/v1/runs/feedfacecafe", (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify(run) }));
  await page.route("**/api/v1/runs/feedfacecafe/events", (route) =>
    route.fulfill({ contentType: "text/event-stream", body: stream.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify({ event, ...data })}\n\n`).join("") }),
  );
  await page.goto(`${served().url}path?scan=feedfacecafe`);
  await page.getByText("1\u202f200 of at most 4\u202f800 packets sent, up to 45 s more").waitFor();
  // Where losses are split by direction, more leave than was said first.
  stream.push(["scanned", { packets: 5000 }]);
  await page.reload();
  await page.getByText("5\u202f000 of at most 5\u202f000 packets sent", { exact: true }).waitFor();
  await page.context().close();
});

test("a server's first window is asked for in the lab, has an address, and a real server needs the token", async () => {
  const { page, complaints } = await open("path");
  await page.getByRole("link", { name: "First window", exact: true }).click();
  await page.getByRole("heading", { level: 1, name: "First window" }).waitFor();
  await page.getByText("Nothing asked yet.").waitFor();
  await page.getByText("As a command").click();
  await page.getByLabel("The same as a command").getByText("windtunnel lab run lan -- windtunnel first-window http://server/bytes/1MB").waitFor();
  await fine(page, "first window before it");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.waitForURL(/first-window\?run=[0-9a-f]{12}/);
  // How many segments a busy machine can tell apart isn't said here: the page says what the answer says.
  const headline = page.getByRole("heading", { name: /^(The server sends (at least )?\d+ segments?( of \d+ bytes)? at first|The first window isn't known)/ });
  await headline.waitFor(PATIENCE);
  const run = new URL(page.url()).searchParams.get("run");
  const events = await (await fetch(`${served().url}api/v1/runs/${run}/events`)).text();
  const found = JSON.parse(events.split("event: result\ndata: ")[1].split("\n")[0]).targets[0];
  assert.equal(found.url, "http://server/bytes/1MB");
  const told = await headline.innerText();
  if (found.verdict === "exact") assert.ok(told.startsWith(`The server sends ${found.segments} segment`), told);
  if (found.verdict === "at-least") assert.ok(told.startsWith(`The server sends at least ${found.segments} segment`), told);
  if (found.syn_ack) {
    const table = page.getByRole("region", { name: "Options of the SYN-ACK" });
    assert.equal(await table.getByRole("row").filter({ hasText: "Largest segment" }).locator("td").innerText(), `${found.syn_ack.mss} bytes`);
  }
  await fine(page, "a first window");
  await page.reload();
  await headline.waitFor();
  await page.goBack();
  await headline.waitFor({ state: "detached" });
  assert.deepEqual(complaints, []);
  await page.getByLabel("Where", { exact: true }).selectOption("target");
  await page.getByLabel("Large file", { exact: true }).fill("http://127.0.0.1:9/x");
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.getByRole("alert").getByText("needs the token").waitFor();
  await page.getByLabel("Large file", { exact: true }).fill("ftp://127.0.0.1/x");
  await page.getByLabel("Token", { exact: true }).fill(served().token);
  await page.getByRole("button", { name: "Ask", exact: true }).click();
  await page.getByRole("alert").waitFor();
  await page.context().close();
});

test("a page is drawn object by object before and after, as its trials have it, on one scale", async () => {
  await wait(await post("experiments", { lab: "lan", workload: "page", knobs: ["initcwnd"], levels: { initcwnd: "2,20" }, budget: "6 trials" }));
  const [{ id }] = await journal();
  const told = await report(id);
  assert.equal(told.measured.unit, "s");
  const { page, complaints } = await open(`report/${id}`);
  await page.getByRole("link", { name: "How the page came, before and after" }).click();
  await page.waitForURL(`**/waterfall/${id}`);
  await page.getByRole("heading", { level: 2, name: /^Before: current, / }).waitFor();
  await page.getByRole("heading", { level: 2, name: /^After: / }).waitFor();
  const loads = told.trial_table.filter(({ arm, status }) => arm === 0 && status === "completed").sort((a, b) => a.elapsed_us - b.elapsed_us);
  const middle = loads[(loads.length - 1) >> 1];
  assert.ok(middle.measures.objects.length >= 2);
  const svgs = page.locator(".waterfall svg");
  assert.equal(await svgs.count(), 2);
  // A row for each object: what waits and what comes.
  assert.equal(await svgs.first().locator("g").count(), middle.measures.objects.length);
  await fine(page, "a waterfall");
  const [name, text] = await kept(page, page.getByRole("button", { name: /^SVG: How the page came with current/ }));
  assert.match(name, /\.svg$/);
  const seen = await drawn(page, text);
  assert.equal(seen.bars, 1 + 2 * middle.measures.objects.length);
  const [, table] = await kept(page, page.getByRole("button", { name: /^CSV: How the page came with current/ }));
  const rows = table.trim().split("\n").map((line) => line.split(","));
  assert.deepEqual(rows[0], ["object", "connection", "asked_ms", "first_byte_ms", "done_ms", "bytes"]);
  assert.deepEqual(rows.slice(1).map((row) => Number(row[4])), middle.measures.objects.map(({ done_us }) => done_us / 1e3));
  await page.getByText("As a command").click();
  await page.getByLabel("The same as a command").getByText(`windtunnel report ${id} --html waterfall.html`).waitFor();
  const after = page.getByLabel("After", { exact: true });
  const was = await after.inputValue();
  const other = told.arms.map((_, place) => String(place)).find((place) => place !== "0" && place !== was) ?? "0";
  await after.selectOption(other);
  await page.waitForURL(new RegExp(`after=${other}`));
  await page.reload();
  assert.equal(await after.inputValue(), other);
  await page.goBack();
  // The page is the same one, and draws what its address says now.
  await page.waitForFunction(([field, was]) => field.value === was, [await after.elementHandle(), was]);
  await page.goBack();
  await page.waitForURL(`**/report/${id}`);
  // The same stands in the report that can be kept.
  const html = await (await fetch(`${served().url}api/v1/reports/${id}/html`)).text();
  assert.ok(html.includes("The page, object by object") && html.includes("How the page came: "));
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("an experiment without pages has no waterfall and says so; without a name there is none", async () => {
  await wait(await post("experiments", { lab: "adsl", knobs: ["rwin"], levels: { rwin: "4x" }, trial: "300ms", budget: "4 trials" }));
  const [{ id }] = await journal();
  const { page } = await open(`report/${id}`);
  await page.getByRole("heading", { name: "Settings", exact: true }).waitFor();
  assert.equal(await page.getByRole("link", { name: /^How the page came/ }).count(), 0);
  await page.goto(`${served().url}waterfall/${id}`);
  await page.getByText("No page was loaded in this experiment").waitFor();
  await page.goto(`${served().url}waterfall`);
  await page.getByText("There is no page /waterfall here.").waitFor();
  await page.context().close();
});

test("goodput stands against delay with the settings that no other beats in both, and every chart can be kept as SVG", async () => {
  await wait(await post("experiments", { lab: "adsl", knobs: ["rwin"], levels: { rwin: "2x,8x,32x" }, trial: "500ms", budget: "16 trials" }));
  const [{ id }] = await journal();
  const told = await report(id);
  const points = told.arms.filter(({ delay_us, goodput_bps, state }) => delay_us != null && goodput_bps && state !== "not-set" && state !== "failing");
  assert.ok(points.length >= 2 && told.frontier.length >= 1, JSON.stringify(told.frontier));
  // What the frontier is, computed once more.
  const best = told.arms.flatMap((arm, place) => (points.includes(arm) && !points.some((other) => other !== arm && other.goodput_bps >= arm.goodput_bps && other.delay_us <= arm.delay_us && (other.goodput_bps > arm.goodput_bps || other.delay_us < arm.delay_us)) ? [place] : []));
  assert.deepEqual([...told.frontier].sort(), best.sort());
  const { page, complaints } = await open(`report/${id}`);
  const chart = page.getByRole("img", { name: `Goodput against delay under load of ${points.length} settings` });
  await chart.locator("canvas").waitFor();
  const [name, text] = await kept(page, page.getByRole("button", { name: /^SVG: Goodput against delay/ }));
  assert.match(name, /^goodput-against-delay.*\.svg$/);
  const seen = await drawn(page, text);
  assert.equal(seen.dots, points.length);
  for (const word of ["Delay under load, ms", "Goodput, Mbit/s", "current", "No other has more goodput and less delay"]) assert.ok(seen.texts.includes(word), `${word}: ${seen.texts}`);
  await fine(page, "a frontier");
  const html = await (await fetch(`${served().url}api/v1/reports/${id}/html`)).text();
  assert.ok(html.includes("<h2>Goodput against delay</h2>") && html.includes("Delay under load"));
  await page.goto(`${served().url}analysis?of=${id}`);
  await page.getByRole("heading", { name: "Over time" }).waitFor();
  await settled(page);
  for (const button of await page.getByRole("button", { name: /^SVG: / }).all()) {
    const [, text] = await kept(page, button);
    const picture = await drawn(page, text);
    assert.ok(picture && picture.width > 200 && picture.texts.length > 4, await button.getAttribute("aria-label"));
    assert.ok(!/NaN|Infinity|undefined/.test(text), await button.getAttribute("aria-label"));
  }
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("less delay at the same speed is called so in the history and in its report, and a slow line's axis counts kbit/s", async () => {
  const { id } = (await journal()).find(({ target }) => target === "adsl");
  const told = await report(id);
  const slow = (bps) => (bps == null ? bps : bps / 1e3);
  const arms = told.arms.map((arm, place) => ({ ...arm, state: place === 0 ? "current" : "open", goodput_bps: slow(arm.goodput_bps), figure: slow(arm.figure), model_low: 0.9784, model_high: 1.1027, low: null, high: null, evidence: 3.82, needed: 35 }));
  const delay = { arm: 1, against: 0, shown: true, delay_us: 1e5, against_delay_us: 2e5, goodput_bps: 5e4, against_goodput_bps: 5e4, epsilon: 0.1, evidence: 120, within_evidence: 130, needed: 100, rounds: 9 };
  const verdict = { ...told.verdict, kind: "no-difference", answer: { ...told.verdict.answer, action: "set", host: "here", do: [{ host: "here", command: "sudo windtunnel settings apply rwin=8192 --to default" }] } };
  const { page, complaints } = await open("calculator");
  await page.route(`**/api/v1/reports/${id}`, (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify({ ...told, arms, delay, verdict, physical_goodput_bps: slow(told.physical_goodput_bps) }) }));
  await page.goto(`${served().url}report/${id}`);
  await page.locator(".badge.good").getByText("less delay", { exact: true }).waitFor();
  const row = await page.locator("#arms ~ .wide tbody tr").nth(1).innerText();
  // As the command line has it: rounded outwards, and evidence down.
  assert.ok(row.includes("~ ×0.97 to ×1.11") && row.includes("3 : 1 of 35 : 1"), row);
  const [, text] = await kept(page, page.getByRole("button", { name: /^SVG: Goodput against delay/ }));
  const seen = await drawn(page, text);
  assert.ok(seen.texts.includes("Goodput, kbit/s"), `${seen.texts}`);
  const one = { id, kind: "tune", target: "isdn", tunnel: "lab", state: "finished", started_unix_us: 1.7e15, comment: "", trials: 42, workload: "bulk", action: "set", verdict: "no-difference", answer: "rwin=8192 keeps the speed with 36 % less delay.", change_bp: -3630 };
  await page.route("**/api/v1/journal", (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify({ schema_version: 1, experiments: [one] }) }));
  await page.goto(`${served().url}history`);
  const listed = await page.locator("#experiments ~ .wide tbody tr").innerText();
  assert.ok(listed.includes("less delay") && listed.includes("+36.3 %"), listed);
  await fine(page, "less delay");
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("the calculator's strip has every part of the frame in its place and true to scale", async () => {
  const { page } = await open("calculator");
  const strip = page.locator("#frame ~ .to-scale");
  await strip.waitFor();
  const parts = await strip.evaluate((strip) => {
    const { left, width } = strip.getBoundingClientRect();
    return [...strip.children].map((part) => [part.getBoundingClientRect().left - left, part.getBoundingClientRect().right - left].map((at) => at / width));
  });
  assert.ok(parts.length > 4 && parts[0][0] < 0.01 && parts.at(-1)[1] > 0.99, JSON.stringify(parts));
  parts.slice(1).forEach(([begin], at) => assert.ok(Math.abs(begin - parts[at][1]) < 0.005, JSON.stringify(parts)));
  await page.context().close();
});

test("a winner that belongs on the server is no plan for this host, and its command can be copied", async () => {
  await wait(await post("experiments", { lab: "lan", workload: "page", knobs: ["initcwnd"], levels: { initcwnd: "20" }, budget: "4 trials" }));
  const [{ id }] = await journal();
  const told = await report(id);
  const command = "sudo windtunnel settings apply initcwnd=20 --to default";
  const won = (host) => ({ ...told, arms: told.arms.map((arm, place) => (place === 1 ? { ...arm, state: "faster" } : arm)), verdict: { ...told.verdict, kind: "faster", answer: { ...told.verdict.answer, action: "set", host, do: [{ host, command }] } } });
  for (const [host, where, plan] of [["server", "on the server", 0], ["client", "on the client", 1], ["here", "on this host", 1]]) {
    const { page, complaints } = await open("calculator");
    await page.route(`**/api/v1/reports/${id}`, (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify(won(host)) }));
    await page.goto(`${served().url}report/${id}`);
    await page.getByText(`What to type ${where}`).click();
    await page.getByLabel(`What to type ${where}`).getByText(command).waitFor();
    assert.equal(await page.getByRole("link", { name: "Plan initcwnd=20 on this host" }).count(), plan, host);
    if (host === "server") await fine(page, "a winner of the server");
    assert.deepEqual(complaints, []);
    await page.context().close();
  }
});

test("the narrowest link has an interval or isn't told", async () => {
  const { page } = await open("path?lab=lan");
  await page.getByRole("button", { name: "Probe the path" }).click();
  await page.locator("#hops").waitFor(PATIENCE);
  const run = new URL(page.url()).searchParams.get("run");
  const events = await (await fetch(`${served().url}api/v1/runs/${run}/events`)).text();
  const found = JSON.parse(events.split("event: result\ndata: ")[1].split("\n")[0]);
  const figure = page.locator(".figure").filter({ hasText: /^Narrowest link/ });
  assert.equal(await figure.count(), found.bottleneck_bps === null ? 0 : 1);
  if (found.bottleneck_bps !== null) assert.match(await figure.innerText(), found.bottleneck_high_bps === null ? /at least/ : / to /);
  await page.context().close();
});

test("an empty journal has a start, a history and an analysis that say so", async () => {
  const own = await server();
  try {
    for (const view of ["", "history", "analysis"]) {
      const { page, complaints } = await open(view, undefined, own.url);
      await settled(page);
      await page.getByRole("heading", { level: 1 }).waitFor();
      assert.deepEqual(complaints, []);
      await page.context().close();
    }
  } finally {
    await own.end();
  }
});

/** A report of the README in the journal, and what the API answers for it, changed. */
async function changed(name, change) {
  const { id, text } = sampled(name);
  execFileSync(BINARY, ["journal", "import", "-"], { env: served().env, input: text });
  const told = await report(id);
  change(told);
  const { page, complaints } = await open("calculator");
  await page.route(`**/api/v1/reports/${id}`, (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify(told) }));
  return { id, told, page, complaints };
}

test("a browser's queue is no wait for the server: it is thin, and has its place in the tooltip and in the table", async () => {
  const { id, page, complaints } = await changed("pages", (told) => {
    for (const { measures } of told.trial_table) {
      for (const one of measures?.objects ?? []) one.sent_us = one.object === 0 ? one.asked_us : Math.round((one.asked_us + one.first_byte_us) / 2);
    }
  });
  await page.goto(`${served().url}waterfall/${id}`);
  await page.getByText("the thin line waits in the browser for a connection").waitFor();
  const [, text] = await kept(page, page.getByRole("button", { name: /^SVG: How the page came with current/ }));
  // The first object was sent at once; each of the other 43 has a line more.
  assert.equal((await drawn(page, text)).bars, 1 + 2 * 44 + 43);
  assert.match(text, /<title>Object 2, connection \d: asked at [\d.]+ ms, sent at [\d.]+ ms, first byte at /);
  const [, table] = await kept(page, page.getByRole("button", { name: /^CSV: How the page came with current/ }));
  const [head, , second] = table.trim().split("\n").map((line) => line.split(","));
  assert.deepEqual(head, ["object", "connection", "asked_ms", "sent_ms", "first_byte_ms", "done_ms", "bytes"]);
  assert.ok(Number(second[2]) < Number(second[3]) && Number(second[3]) < Number(second[4]), second.join());
  await fine(page, "a waterfall of a browser");
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("intervals are called by the confidence that the experiment has, and charts by what was measured", async () => {
  const { id, page, complaints } = await changed("pages", (told) => (told.verdict.alpha = 0.025));
  await page.goto(`${served().url}report/${id}`);
  await page.getByRole("columnheader", { name: "98 % interval", exact: true }).waitFor();
  assert.equal(await page.getByRole("columnheader", { name: "95 % interval" }).count(), 0);
  await page.goto(`${served().url}analysis?of=${id}`);
  await page.getByRole("img", { name: /^Load time of 4 settings as ratios to the current one's, where larger is better, with 98 % intervals/ }).waitFor();
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("no evidence has no bar, half of it reaches half of the way to the line, and an axis's ends stand at its ends", async () => {
  const { page } = await open("calculator");
  const run = { id: "feedfacecafe", kind: "experiment", request: { lab: "adsl" }, started_unix_us: 0, experiment: null, end: null };
  const measured = { name: "goodput", unit: "bit/s", better: "larger" };
  const trial = (arm, goodput_bps) => ["trial", { phase: "round", round: 1, arm, goodput_bps, figure: goodput_bps, status: "completed", notes: [] }];
  const stream = [
    ["begin", { id: "20261124-081500-adsl-0123", arms: ["current", "rwin=8192", "rwin=65536", "rwin=131072", "rwin=262144"], max_trials: 40, expected_s: 60, measured }],
    trial(0, 6e6),
    trial(1, 1.5e6),
    trial(2, 6.5e6),
    ["round", { rounds: 1, trials: 5, evidence: [1, 1, 0.2, 10, 40], needed: [null, 100, 50, 100, 40], spent_s: 9, left: 35 }],
    ["end", { exit_code: 130 }],
  ];
  await page.route("**/api/v1/runs/feedfacecafe", (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify(run) }));
  await page.route("**/api/v1/runs/feedfacecafe/events", (route) =>
    route.fulfill({ contentType: "text/event-stream", body: stream.map(([event, data]) => `event: ${event}\ndata: ${JSON.stringify({ event, ...data })}\n\n`).join("") }),
  );
  await page.goto(`${served().url}experiment/feedfacecafe`);
  const chart = page.getByRole("list", { name: /^Evidence for 4 settings after round 1/ });
  await chart.waitFor();
  const percents = (list, part, side) => list.locator(part).evaluateAll((marks, side) => marks.map((mark) => parseFloat(mark.style[side])), side);
  const [line] = await percents(chart, ".strip-rule", "left");
  const bars = await percents(chart, ".strip-bar", "width");
  assert.deepEqual(bars.map((bar) => Math.round((100 * bar) / line)), [0, 0, 50, 100]);
  await page.getByText("begin at 1 : 1, which is no evidence").waitFor();
  const dots = await percents(page.getByRole("list", { name: /^Goodput of 3 trials of 5 settings/ }), ".strip-dot", "left");
  assert.deepEqual(dots, [90, 0, 100]);
  await page.context().close();
});
