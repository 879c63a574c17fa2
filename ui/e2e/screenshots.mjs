// Pictures of each view: node e2e/screenshots.mjs [FOLDER] [all]
// Without `all`, those of the guide: light, desktop. With it, dark and phone too, to look at.
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

const served = await server();
const chrome = await browser();
try {
  for (const { name, ...look } of looks) {
    const page = await chrome.newPage({ ...look, reducedMotion: "reduce" });
    const shoot = (view) => page.screenshot({ path: join(folder, `web-${view}${name}.png`), fullPage: Boolean(all) });
    await page.goto(`${served.url}host`);
    await page.getByRole("heading", { name: "Findings" }).waitFor();
    // It shows addresses of the machine at hand: to look at, not for the guide.
    if (all) await shoot("host");
    await page.goto(`${served.url}calculator`);
    await page.locator("#sawtooth ~ .chart canvas").waitFor();
    await shoot("calculator");
    await page.goto(`${served.url}experiment`);
    const another = page.getByRole("button", { name: "Another experiment" });
    if (look === looks[0] || !(await another.isVisible())) {
      const start = page.getByRole("button", { name: "Start" });
      await start.or(another).waitFor();
      if (await start.isVisible()) {
        await page.locator(".figures").waitFor();
        if (all) await shoot("choose");
        await page.getByLabel("mtu", { exact: true }).uncheck();
        await page.getByLabel("cc", { exact: true }).uncheck();
        await page.getByLabel("Levels of rwin").fill("4x,8x,16x,32x");
        await page.getByLabel("Each trial").fill("500ms");
        await page.getByLabel("Budget").fill("40 trials");
        await start.click();
        if (all) {
          await page.locator("#goodput ~ .chart canvas").waitFor({ timeout: 120000 });
          await shoot("live");
        }
      }
    }
    await another.waitFor({ timeout: 300000 });
    await page.locator("#arms").waitFor();
    await shoot("experiment");
    await page.goto(`${served.url}history`);
    await page.getByRole("button", { name: /adsl/ }).first().waitFor();
    await shoot("history");
    await page.close();
  }
} finally {
  await chrome.close();
  await served.end();
}
