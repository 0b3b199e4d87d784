/** The main paths of the console in Firefox: every screen, live values, the page link lost, a command, a held command, themes. */
import type { Browser } from 'puppeteer-core';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import {
  type FirefoxLab,
  type FirefoxOptions,
  openInFirefox,
  startFirefox,
} from '../../support/service/firefox-lab.ts';
import { more_ids, playFiles, playMore } from '../../support/service/page-kit.ts';
import { ids } from '../../support/service/page-lab.ts';
import { playPast } from '../../support/service/page-past.ts';
import { withDirectory } from '../../support/temporary.ts';
import { word } from '../../support/service/page-words.ts';
import { peerMissing } from '../../support/peers.ts';

const test_ms = 120_000;
/** Each screen with something that stands there once it is complete. */
const screens = {
  '': '.assets .asset-row',
  '/map': '.mapbox',
  '/assets': '.asset-row',
  [`/a/${ids.drone}`]: '#commands',
  [`/a/${more_ids.camera}`]: '.ptz-pad',
  [`/a/${more_ids.radio}`]: 'main .card',
  [`/a/${more_ids.gateway}`]: 'main .card',
  '/links': '#completeness',
  '/activity': '#log .event',
  '/settings': 'main .card',
  '/files': '.file',
  '/align': 'main .card',
};
const fleet_screens = {
  kits: '.kit-item',
  alarms: '.alarm',
  log: '#log .event',
  manage: '#keys .managed',
};

describe.skipIf(peerMissing('firefox-esr'))('The console in Firefox', () => {
  let browser: Browser;
  let open: FirefoxLab | undefined;
  beforeAll(async () => {
    browser = await startFirefox();
  }, test_ms);
  afterEach(async () => {
    await open?.stop();
    open = undefined;
  });
  afterAll(async () => browser.close());

  const show = async (options?: FirefoxOptions): Promise<FirefoxLab> => {
    open = await openInFirefox(browser, options);
    await open.see(word('state.live'));
    return open;
  };

  it.each([320, 1_280])(
    'shows every screen without errors and not wider than %i px',
    async (width_px) => {
      const lab = await show({ width_px, hasHistory: true });
      await playMore(lab.lab);
      await playPast(lab.lab);
      await playFiles(lab.lab, new Date().toISOString());
      const wide: string[] = [];
      const look = async (path: string, complete: string): Promise<void> => {
        await lab.page.waitForSelector(complete);
        const overhang = await lab.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        if (overhang > 0) wide.push(`${path}: ${overhang} px`);
      };
      for (const [path, complete] of Object.entries(screens)) {
        await lab.visit(path);
        await look(path, complete);
      }
      for (const [screen, complete] of Object.entries(fleet_screens)) {
        await lab.visitFleet(screen);
        await look(screen, complete);
      }
      expect(wide).toEqual([]);
      expect(lab.complaints).toEqual([]);
    },
    test_ms,
  );

  it(
    'goes from the list of kits to an alarm, its asset, its history, the map and a file',
    async () =>
      withDirectory(async (dir) => {
        const settings = { dir, url: 'https://kits.example.com', bytes_max: 1e9, days: { default: 90 } };
        const files = { settings, send: async () => undefined };
        const lab = await show({ width_px: 1_280, hasHistory: true, files });
        const { page } = lab;
        const press = async (selector: string, text: string): Promise<void> => {
          const pressed = await page.waitForSelector(`${selector} ::-p-text(${text})`);
          await pressed?.click();
        };
        await playMore(lab.lab);
        await playPast(lab.lab);
        await playFiles(lab.lab, new Date().toISOString());
        await lab.visitFleet('kits');
        await page.waitForSelector('.kit-item');
        await press('.fleet-nav', word('nav.alarms'));
        await page.waitForSelector('.alarm');
        const alarms = async (): Promise<number> => (await page.$$('.alarm')).length;
        const before = await alarms();
        await press('.alarm-actions', word('alarms.acknowledge'));
        await eventually('one is taken', async () => (await alarms()) === before - 1);
        await press('.chip', word('alarms.state.acknowledged'));
        await lab.see('acknowledged by test');
        await lab.visit('/assets');
        await press('.asset-row', 'Drone 1');
        await page.waitForSelector('.chart');
        await press('.ranges', '1 h');
        await lab.visit('/map');
        await page.waitForSelector('.mapbox .scale');
        await lab.visit('/files');
        await press('.file', word('files.request'));
        await lab.see(word('files.requested'));
        expect(lab.complaints).toEqual([]);
      }),
    test_ms,
  );

  it(
    'moves a camera while an arrow is held, and stops it when the pointer is lifted elsewhere',
    async () => {
      const lab = await show();
      await playMore(lab.lab);
      await lab.visit(`/a/${more_ids.camera}`);
      const pad = await lab.page.waitForSelector('.ptz-pad');
      await pad?.scrollIntoView();
      const box = await pad?.boundingBox();
      const [x, y] = [(box?.x ?? 0) + (box?.width ?? 0) - 22, (box?.y ?? 0) + (box?.height ?? 0) / 2];
      const directions = (): readonly unknown[] =>
        lab.lab.dispatched.map(({ payload }) => (payload as { direction?: unknown }).direction);
      await lab.page.mouse.move(x, y);
      await lab.page.mouse.down();
      await eventually('it moves', () => directions().includes('right'));
      await lab.page.mouse.move(5, 5);
      await lab.page.mouse.up();
      await eventually('it is stopped', () => directions().at(-1) === 'stop');
    },
    test_ms,
  );
});
