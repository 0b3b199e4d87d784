/** Every screen of the console at three widths, in each theme: accessible, not wider than the screen, without errors. */
import { mkdir } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import { announce, faultsOf, ids, page_kit_id, type PageLab } from '../../support/service/page-lab.ts';
import { more_ids, playFiles, playMore } from '../../support/service/page-kit.ts';
import { playPast } from '../../support/service/page-past.ts';
import { brokenWords } from '../../support/service/page-text.ts';
import { pageScene } from '../../support/service/page-scene.ts';
import { word } from '../../support/service/page-words.ts';
import { channels } from '../../../src/contract/topics.ts';
import { samples } from '../../support/contract-samples.ts';
import { peerMissing } from '../../support/peers.ts';

/** Pictures to look at, made with `KIT_CONNECTOR_PICTURES=1`; not kept in git. */
const pictures = new URL('shots/', import.meta.url);
const keeps_pictures = process.env['KIT_CONNECTOR_PICTURES'] === '1';
type ColorScheme = 'light' | 'dark';

async function keepPicture(page: Page, name: string): Promise<void> {
  if (!keeps_pictures) return;
  await mkdir(pictures, { recursive: true });
  await page.screenshot({ path: new URL(`${name}.png`, pictures).pathname, fullPage: true });
}

const kit = `k/${page_kit_id}`;
const screens = {
  overview: kit,
  map: `${kit}/map`,
  assets: `${kit}/assets`,
  files: `${kit}/files`,
  drone: `${kit}/a/${ids.drone}`,
  camera: `${kit}/a/${more_ids.camera}`,
  radio: `${kit}/a/${more_ids.radio}`,
  gateway: `${kit}/a/${more_ids.gateway}`,
  links: `${kit}/links`,
  align: `${kit}/align`,
  activity: `${kit}/activity`,
  settings: `${kit}/settings`,
  kits: 'kits',
  alarms: 'alarms',
  log: 'log',
  manage: 'manage',
};

describe.skipIf(peerMissing('chromium-headless-shell'))('The screens of the console', () => {
  const { again } = pageScene();

  /** The service of the scene has them switched off. */
  const prepare = async (page: Page): Promise<void> =>
    void (await page.route('**/api/webhooks', async (route) => route.fulfill({ json: { webhooks: [] } })));
  let filled: PageLab | undefined;
  /** The page of the look before, where there was one: one kit is shown in all of them. */
  const open = async (width_px: number): Promise<PageLab> => {
    const lab = await again({ width_px, hasHistory: true, prepare });
    if (lab !== filled) {
      await playMore(lab.lab);
      await playPast(lab.lab);
      await playFiles(lab.lab, new Date().toISOString());
    }
    filled = lab;
    return lab;
  };

  /** Visits every screen and returns what is wrong. */
  const visit = async (lab: PageLab, name: string): Promise<readonly string[]> => {
    const found: string[] = [];
    for (const [screen, path] of Object.entries(screens)) {
      await lab.page.goto(`${lab.url}/#/${path}`);
      await lab.page.locator('main .card, main .mapbox').first().waitFor();
      if (screen === 'links') await lab.page.locator('#completeness, #clients').nth(1).waitFor();
      if (screen === 'alarms') await lab.page.locator('.alarm').first().waitFor();
      if (screen === 'files') await lab.page.locator('.file').nth(3).waitFor();
      if (screen === 'manage') await lab.page.locator('#keys .managed').nth(1).waitFor();
      if (screen === 'activity') await lab.page.locator('#log .event').first().waitFor();
      found.push(...(await faultsOf(lab.page)).map((fault) => `${screen}: ${fault}`));
      await keepPicture(lab.page, `${screen}-${name}`);
      const overhang = await lab.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (overhang > 0) found.push(`${screen}: ${overhang} px wider than the screen`);
      const size = lab.page.viewportSize() ?? { width: 0, height: 0 };
      for (const width of new Set([size.width, Math.max(390, size.width)])) {
        await lab.page.setViewportSize({ ...size, width });
        const broken = await brokenWords(lab.page);
        found.push(...broken.map((word) => `${screen}, ${width} px: broken word ${word}`));
      }
      await lab.page.setViewportSize(size);
    }
    return [...found, ...lab.complaints, ...lab.strangers];
  };

  interface Look {
    readonly width: number;
    readonly theme: string;
    readonly language: string;
    readonly system: ColorScheme;
    readonly shown: string;
  }
  const play = async ({ width: width_px, theme, language, system, shown }: Look) => {
    const lab = await open(width_px);
    await lab.page.emulateMedia({ colorScheme: system });
    const stored = JSON.stringify({ theme, language });
    await lab.page.evaluate((text) => localStorage.setItem('kit-console', text), stored);
    await lab.page.reload();
    const faults = await visit(lab, `${width_px}-${shown}-${language}`);
    const html = lab.page.locator('html');
    return {
      faults,
      shown: await html.getAttribute('data-theme'),
      language: await html.getAttribute('lang'),
    };
  };

  it.each<Look>([{ width: 1_280, theme: 'auto', language: 'en', system: 'light', shown: 'day' }])(
    'are accessible and not wider than $width px in the theme $theme, language $language, on a system that is $system',
    { timeout: 180_000 },
    async (look) => {
      expect(await play(look)).toEqual({ faults: [], shown: look.shown, language: look.language });
    },
  );

  it.each<Look>([
    // The longest words on the narrowest screen.
    { width: 320, theme: 'day', language: 'de', system: 'dark', shown: 'day' },
    { width: 320, theme: 'red', language: 'en', system: 'light', shown: 'red' },
    { width: 390, theme: 'auto', language: 'en', system: 'dark', shown: 'night' },
  ])(
    'are so in the theme $theme at $width px too, on a system that is $system',
    { tags: 'long', timeout: 180_000 },
    async (look) => {
      expect(await play(look)).toEqual({ faults: [], shown: look.shown, language: look.language });
    },
  );

  it('show the numbers, the map and the safe ways home of a drone on a phone without scrolling', async () => {
    const lab = await again({ width_px: 390 });
    await lab.lab.publish(channels.feed(ids.drone, 'gps_raw'), samples['droneGpsRaw'] ?? {});
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/a/${ids.drone}`);
    await lab.page.locator('.instruments .fact', { hasText: word('drone.satellites') }).waitFor();
    const ends = await lab.page
      .locator('.instruments .fact, .mapbox .scale')
      .evaluateAll((all) => all.map((each) => each.getBoundingClientRect().bottom));
    expect(ends.length).toBeGreaterThanOrEqual(7);
    expect(Math.max(...ends)).toBeLessThan(844 - 70);
  });

  it('keep words whole on a tablet held across', async () => {
    const lab = await again({ width_px: 1_024 });
    const words = lab.page.locator('.link .rate, .asset-row .nm, .tile .cap');
    await words.nth(8).waitFor();
    const widths_of_words = await words.evaluateAll((all) =>
      all.map((each) => each.clientWidth || each.getBoundingClientRect().width),
    );
    expect(Math.min(...widths_of_words)).toBeGreaterThan(60);
  });

  it('stay quick to read with 200 assets', { tags: 'long' }, async () => {
    const lab = await again({ width_px: 390 });
    await Promise.all(
      Array.from({ length: 200 }, async (_, i) =>
        announce(lab.lab, `${String(i).padStart(8, '0')}-40d5-591e-99b0-da01ff1f3341`, {
          name: `Unit ${i}`,
          type: 'sensor',
          protocol: 'mavlink',
        }),
      ),
    );
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/assets`);
    await lab.page.locator('.asset-row').nth(202).waitFor({ state: 'attached' });
    expect(await faultsOf(lab.page)).toEqual([]);
    const overhang = await lab.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(overhang).toBeLessThanOrEqual(0);
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}`);
    // The overview shows the first and names the rest.
    await lab.page.locator('#assets .btn.more', { hasText: '203' }).waitFor();
  });

  it('leave room between the rates and the icons of the path, and no gap beside tiles', async () => {
    const lab = await again({ width_px: 390 });
    await playMore(lab.lab);
    await lab.page.locator('.path .w span span').first().waitFor();
    const boxesOf = async (selector: string) =>
      lab.page
        .locator(selector)
        .evaluateAll((all) => all.map((each) => each.getBoundingClientRect()))
        .then((all) => all.map(({ left, right, top }) => ({ left, right, top })));
    const icons = await boxesOf('.path .n i');
    for (const text of await boxesOf('.path .w span span'))
      for (const icon of icons)
        expect(Math.max(text.left - icon.right, icon.left - text.right)).toBeGreaterThan(0);
    await lab.page.setViewportSize({ width: 768, height: 844 });
    const tiles = await boxesOf('.tiles > .tile');
    expect([tiles.length, new Set(tiles.map(({ top }) => top)).size]).toEqual([3, 1]);
  });
});
