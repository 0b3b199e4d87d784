/**
 * The page on a phone that slept: `performance.now()` stood still meanwhile, as in every browser but those on Windows
 * (https://github.com/w3c/hr-time/issues/115, https://github.com/mdn/content/issues/33760).
 */
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { pageScene } from '../../support/service/page-scene.ts';
import { peerMissing } from '../../support/peers.ts';

describe.skipIf(peerMissing('chromium-headless-shell'))('the page after an hour of sleep', () => {
  const { show } = pageScene();
  const sleep = (): void => {
    const { now } = Date;
    Date.now = () => now() + 3_600_000;
  };

  it('shows what it knew as an hour old while it has no network', async () => {
    const { page, link } = await show();
    link.stall();
    await page.evaluate(sleep);
    const said = page.locator('.page-link', { hasText: 'Disconnected 1 h' });
    await said.waitFor();
    expect(await said.count()).toBe(1);
  });

  it('asks anew over another socket, and shows new values as new', async () => {
    const { page } = await show();
    const opened = page.waitForEvent('websocket');
    await page.evaluate(sleep);
    await opened;
    await eventually('values are new', async () => (await page.getByText(/\b1 h\b/u).count()) === 0);
    expect(await page.locator('.page-link').textContent()).toMatch(/live/iu);
  });
});
