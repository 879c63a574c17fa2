// What stands on the first screen, and on paper: rates that a line can carry, commands to copy, words instead of flags.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { after, afterEach, before, test } from "node:test";
import { fine, helped, LOOKS, PATIENCE, settled } from "./help.mjs";
import { BINARY } from "./start.mjs";

const GOLDEN = new URL("../../crates/windtunnel/tests/golden/readme/", import.meta.url).pathname;
const { open, served, begin, end, tidy, post, wait } = helped();
before(begin);
afterEach(tidy);
after(end);

/** Takes the README's experiments into the server's journal; their names. */
const taken = () =>
  ["pages.json", "adsl.json"].map((name) => {
    execFileSync(BINARY, ["journal", "import", GOLDEN + name], { env: served().env, stdio: "ignore" });
    return JSON.parse(readFileSync(GOLDEN + name, "utf8")).experiment.id;
  });

test("the lab's chart never shows more than the line carries, whichever way the transfer goes", async () => {
  const lab = await (await fetch(`${served().url}api/v1/lab/presets/dialup`)).json();
  const { page, complaints } = await open("lab");
  await page.getByLabel("Begin with", { exact: true }).selectOption("dialup");
  await page.waitForFunction(() => document.querySelector(".figure dd")?.innerText.includes("ms"));
  await page.getByText("As a command").click();
  await page.getByLabel("The same as a command").getByText("windtunnel lab run drawn.toml").waitFor();
  await page.getByRole("button", { name: "Start it" }).click();
  await page.getByRole("heading", { name: /^The lab is up/ }).waitFor(PATIENCE);
  for (const [way, most] of [["download", lab.physical_goodput_bps.down], ["upload", lab.physical_goodput_bps.up]]) {
    await page.getByLabel("Workload", { exact: true }).selectOption(way);
    await page.getByLabel("How much", { exact: true }).fill("8s");
    await page.getByText("This as a command").click();
    const direction = way === "upload" ? " --direction up" : "";
    await page.getByLabel("This as a command").getByText(`windtunnel lab run drawn.toml -- windtunnel lab transfer --trial 8s${direction}`, { exact: true }).waitFor();
    await page.getByText("This as a command").click();
    await page.getByRole("button", { name: "Run it" }).click();
    await page.getByRole("heading", { name: `The ${way} over time` }).waitFor(PATIENCE);
    const button = page.getByRole("button", { name: /^CSV: Goodput over/ });
    const [file] = await Promise.all([page.waitForEvent("download"), button.click()]);
    const rates = readFileSync(await file.path(), "utf8").trim().split("\n").slice(1).map((line) => Number(line.split(",")[1]));
    assert.ok(rates.length > 100 && Math.max(...rates) > 0, `${rates.length} rates`);
    // One packet occupies this line for 0.4 s; samples come each 10 ms.
    assert.ok(Math.max(...rates) * 1e6 <= most * 1.06, `${way}: ${Math.max(...rates)} Mbit/s of ${most / 1e6}`);
    await page.getByRole("button", { name: "Run it" }).and(page.locator(":enabled")).waitFor(PATIENCE);
  }
  await fine(page, "a transfer in the lab");
  await page.getByRole("button", { name: "Take the lab down" }).click();
  await page.getByText("nothing of it is left").waitFor(PATIENCE);
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("probes in the lab and comparisons can be copied as commands", async () => {
  const { page, complaints } = await open("path?lab=black-hole");
  await settled(page);
  await page.getByText("As a command").click();
  const command = page.getByLabel("The same as a command");
  assert.equal(await command.innerText(), "windtunnel lab run black-hole -- windtunnel path server\n# Sizes:\nwindtunnel lab run black-hole -- windtunnel mtu --scan server");
  await fine(page, "a path as a command");
  await page.getByLabel("Where", { exact: true }).selectOption("target");
  await page.getByLabel("Host", { exact: true }).fill("example.org");
  assert.equal(await command.textContent(), "windtunnel path example.org\n# Sizes:\nwindtunnel mtu --scan example.org");
  const [pages, adsl] = taken();
  await page.goto(`${served().url}analysis?of=${pages}&with=${adsl}`);
  await page.getByRole("heading", { name: "Side by side" }).waitFor();
  await page.getByText("As a command").last().click();
  assert.equal(await command.last().innerText(), `windtunnel compare ${pages} ${adsl}`);
  assert.deepEqual(complaints, []);
  await page.context().close();
});

test("messages of the page have its own words where the command line has flags; whole commands stand as they are", async () => {
  const [id] = taken();
  const told = await (await fetch(`${served().url}api/v1/reports/${id}`)).json();
  const warnings = ["A larger --budget, or a shorter --trial, may decide it.", "The remote host sends, and it isn't ours to set there; try --direction up, or iperf3:// and wt:// for cc"];
  const next = [`Undecided. Continue with: windtunnel tune --resume ${id} --budget 10min`];
  const { page, complaints } = await open("calculator");
  await page.route(`**/api/v1/reports/${id}`, (route) => route.fulfill({ contentType: "application/json", body: JSON.stringify({ ...told, warnings, next }) }));
  await page.goto(`${served().url}report/${id}`);
  await page.getByText("A larger Budget, or a shorter Each trial, may decide it.").waitFor();
  await page.getByText("The remote host sends, and it isn't ours to set there; choose “up” as Direction").waitFor();
  await page.getByText(next[0]).waitFor();
  // What is refused is said so, too: each field with something that isn't one.
  for (const [address, part] of [["calculator?mtu=abc", "MTU: "], ["experiment?lab=adsl&budget=10", "Budget"], ["calculator?encap=nonsense", "Encapsulation: "]]) {
    await page.goto(served().url + address);
    const alert = page.getByRole("alert").first();
    await alert.waitFor();
    const text = await alert.innerText();
    assert.ok(text.includes(part) && !/(^|[\s'(])--[a-z]/.test(text), text);
  }
  assert.deepEqual(complaints.filter((text) => !text.includes("400")), []);
  await page.context().close();
});

/** How many pages a PDF has. */
const pages = (pdf) => pdf.toString("latin1").match(/\/Type\s*\/Page\b/g)?.length ?? 0;

test("a report's tiles have before, after, change, confidence and the command, and it prints on one page", async () => {
  for (const id of taken()) {
    const { answer } = (await (await fetch(`${served().url}api/v1/reports/${id}`)).json()).verdict;
    const { page } = await open("calculator");
    // The server gives the report as a file to keep.
    await page.goto("about:blank");
    await page.setContent(await (await fetch(`${served().url}api/v1/reports/${id}/html`)).text());
    const tiles = await page.locator(".tiles dd").allInnerTexts();
    assert.match(tiles[0], /^[\d.]+ (s|ms|Mbit\/s) → [\d.]+ (s|ms|Mbit\/s)$/);
    assert.ok(tiles.some((tile) => /^[+−][\d.]+ % \(at least [+−][\d.]+ %\)$/.test(tile)), tiles.join("; "));
    assert.ok(tiles.some((tile) => /with 95 % confidence; \d+ rounds, /.test(tile)), tiles.join("; "));
    assert.deepEqual(await page.locator("pre code").first().innerText(), answer.do[0].command);
    assert.equal(await page.locator("main > details[open]").count(), 0);
    // Tiles stand on the first screen.
    const box = await page.locator("pre code").first().boundingBox();
    assert.ok(box.y + box.height < LOOKS[0].viewport.height, `${box.y + box.height} px`);
    for (const format of ["A4", "Letter"]) {
      assert.equal(pages(await page.pdf({ format })), 1, `${id} on ${format}`);
    }
    await page.context().close();
  }
});
