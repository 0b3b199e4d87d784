/**
 * The page on a phone that slept: `performance.now()` stood still meanwhile, as in every browser but those on Windows
 * (https://github.com/w3c/hr-time/issues/115, https://github.com/mdn/content/issues/33760).
 */
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { page_kit_id } from '../../support/service/page-lab.ts';
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

  // https://github.com/home-assistant/frontend/issues/17409: the socket of the network before looks open for hours.
  it('asks over another socket when it is back in a network', async () => {
    const { page } = await show();
    const opened = page.waitForEvent('websocket');
    await page.evaluate(() => dispatchEvent(new Event('online')));
    await opened;
    await page.locator('.page-link', { hasText: 'Live' }).waitFor();
    expect(await page.locator('.page-link').textContent()).toMatch(/live/iu);
  });
});

// https://github.com/thefrederiksen/devthrottle/pull/1013, https://github.com/jorisre/react-screen-wake-lock/issues/273
describe.skipIf(peerMissing('chromium-headless-shell'))('the page on which an antenna is aligned', () => {
  const { show } = pageScene();

  it('keeps the screen of the phone on while it is shown, also after another app', async () => {
    const { page, url } = await show();
    await page.evaluate(() => {
      const held: string[] = [];
      Reflect.set(globalThis, 'held', held);
      const request = async () => ({ release: async () => void held.push('released') });
      const wakeLock = { request: async (kind: string) => (held.push(kind), request()) };
      Object.defineProperty(navigator, 'wakeLock', { value: wakeLock });
    });
    const held = async () => page.evaluate(() => String(Reflect.get(globalThis, 'held')));
    await page.goto(`${url}/#/k/${page_kit_id}/align`);
    await page.locator('.meter-card').waitFor();
    expect(await held()).toBe('screen');
    await page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    expect(await held()).toBe('screen,screen');
    await page.goto(`${url}/#/k/${page_kit_id}/links`);
    await eventually('the screen may go off', async () => (await held()).endsWith('released'));
  });
});
