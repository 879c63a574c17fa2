// Several windows and tabs of one browser, which share its six connections to a server.
import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";
import { helped, PATIENCE } from "./help.mjs";

const { open, post, wait, served, begin, end, tidy } = helped();
before(begin);
afterEach(tidy);
after(end);

const ask = { lab: "lan", algorithms: ["cubic", "reno"], rounds: 50, trial: "2s" };
const stop = (page) => page.getByRole("button", { name: "Stop, and keep the rounds that are complete" });
/** The addresses of streams of events that a page has asked for. */
const streams = (page) => {
  const asked = [];
  page.on("request", (request) => /\/events(\?|$)/.test(request.url()) && asked.push(request.url()));
  return asked;
};

test("three windows that watch one run leave the browser connections to stop it", async () => {
  const run = await post("cc/comparisons", ask);
  const { page } = await open("calculator");
  const asked = streams(page);
  await page.goto(`${served().url}controls?run=${run.id}`);
  await stop(page).waitFor(PATIENCE);
  for (let more = 0; more < 2; more++) {
    const other = await page.context().newPage();
    await other.goto(`${served().url}controls?run=${run.id}`);
    await stop(other).waitFor(PATIENCE);
  }
  await stop(page).click();
  await stop(page).waitFor({ state: "detached" });
  assert.equal(asked.length, 1, "all of a window share one stream");
  await page.context().close();
});

test("a window that isn't seen holds no stream, and goes on behind what it has heard", async () => {
  const run = await post("cc/comparisons", ask);
  const { page } = await open("calculator");
  const asked = streams(page);
  await page.addInitScript(() => {
    let hidden = true;
    Object.defineProperty(document, "hidden", { get: () => hidden });
    globalThis.turn = (now) => {
      hidden = now;
      document.dispatchEvent(new Event("visibilitychange"));
    };
  });
  await page.goto(`${served().url}controls?run=${run.id}`);
  await stop(page).waitFor();
  assert.deepEqual(asked, [], "a tab in the background");
  await page.evaluate(() => globalThis.turn(false));
  await page.getByRole("region", { name: "Progress" }).getByText(/of \d+ trials/).waitFor(PATIENCE);
  const gone = page.waitForEvent("requestfailed", (request) => request.url() === asked[0]);
  await page.evaluate(() => globalThis.turn(true));
  await gone;
  await fetch(`${served().url}api/v1/runs/${run.id}`, { method: "DELETE" });
  await wait(run);
  assert.equal(await stop(page).count(), 1, "it hears nothing");
  await page.evaluate(() => globalThis.turn(false));
  await stop(page).waitFor({ state: "detached" });
  assert.equal(asked.length, 2);
  assert.match(asked[1], /\/events\?after=\d+$/);
  await page.context().close();
});
