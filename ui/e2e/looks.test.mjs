// Every view, on screens of both widths and in both colour schemes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { SCREENS, VIEWS, accessible, helped, settled } from "./help.mjs";

const { open, begin, end } = helped();
before(begin);
after(end);

test("every view is accessible, fits its screen and has no complaints, in light and dark, wide and narrow", async () => {
  for (const [place, view] of VIEWS.entries()) {
    for (const [at, viewport] of SCREENS.entries()) {
      // Each view is opened in either scheme, and then has the other one, too.
      const look = { viewport, colorScheme: ["light", "dark"][(place + at) % 2] };
      const { page, complaints } = await open(view, look);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await settled(page);
      if (view === "calculator") await page.locator("#sawtooth ~ .chart canvas").waitFor();
      if (view === "what-if") await page.locator("#over-time ~ .pair canvas").nth(1).waitFor();
      if (view === "lab") await page.getByText("PMTU").waitFor();
      await accessible(page, view, look);
      assert.deepEqual(complaints, [], `${view} ${viewport.width}`);
      await page.context().close();
    }
  }
});
