/** The console by the keyboard alone: every control of every screen is reached, seen, and left again; sheets close with Escape. */
import { describe, expect, it } from 'vitest';
import type { Page } from 'playwright-core';
import { eventually } from '../../support/eventually.ts';
import { faultsOf, ids, page_kit_id } from '../../support/service/page-lab.ts';
import { more_ids, playMore, screens } from '../../support/service/page-kit.ts';
import { playPast } from '../../support/service/page-past.ts';
import { word } from '../../support/service/page-words.ts';
import { pageScene } from '../../support/service/page-scene.ts';
import { peerMissing } from '../../support/peers.ts';

/** No screen of the scene has more controls. */
const stops_max = 200;

/** What the page keeps while the focus walks over it. */
interface Walk {
  /** The controls at its beginning. */
  readonly controls: readonly Element[];
  readonly seen: Set<Element>;
  last: Element | null;
}

/** Where the focus stands. */
interface Stop {
  readonly text: string;
  readonly isMarked: boolean;
  readonly isInSight: boolean;
  /** It stands behind the control before it in the document. */
  readonly follows: boolean;
}

/** Once the screen stands still: what the history brings moves what is below it. */
async function beginWalk(page: Page): Promise<void> {
  const height = async (): Promise<number> => page.evaluate(() => document.documentElement.scrollHeight);
  await eventually('the screen stands still', async () => {
    const before = await height();
    await page.waitForTimeout(300);
    return (await height()) === before;
  });
  await page.evaluate(() => {
    const wanted = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';
    const controls = [...document.querySelectorAll(wanted)].filter(
      (element) => element.checkVisibility() && element.getAttribute('tabindex') !== '-1',
    );
    const walk: Walk = { controls, seen: new Set(), last: null };
    Object.assign(globalThis, { walk });
  });
}

/** The stop of the focus; undefined where it has left the controls of the page, or begins again. */
async function stopOf(page: Page): Promise<Stop | undefined> {
  return page.evaluate(() => {
    const { walk } = globalThis as unknown as { readonly walk: Walk };
    const { activeElement: at } = document;
    if (!at || at === document.body || walk.seen.has(at)) return undefined;
    const isMarked = (element: Element | null): boolean => {
      if (!element || element === document.body) return false;
      const { outlineStyle, outlineWidth } = getComputedStyle(element);
      const isOutlined = outlineStyle !== 'none' && Number.parseFloat(outlineWidth) >= 2;
      return isOutlined || isMarked(element.parentElement);
    };
    const box = at.getBoundingClientRect();
    const isInSight = box.bottom > 0 && box.top < innerHeight && box.width > 0;
    const follows = !walk.last || (walk.last.compareDocumentPosition(at) & 4) !== 0;
    walk.seen.add(at);
    walk.last = at;
    const name = at.getAttribute('aria-label') ?? at.textContent.trim().slice(0, 30);
    return { text: `${at.tagName} ${name}`, isMarked: isMarked(at), isInSight, follows };
  });
}

/** The controls that the focus did not reach. */
async function missedControls(page: Page): Promise<readonly string[]> {
  return page.evaluate(() => {
    const { walk } = globalThis as unknown as { readonly walk: Walk };
    return walk.controls
      .filter((control) => control.isConnected && control.checkVisibility() && !walk.seen.has(control))
      .map((control) => control.outerHTML.slice(0, 100));
  });
}

describe.skipIf(peerMissing('chromium-headless-shell'))('The console by the keyboard', () => {
  const { show } = pageScene();

  it(
    'reaches every control of every screen in the order of the page, shows the focus, and leaves it again',
    { timeout: 180_000 },
    async () => {
      const lab = await show({ width_px: 1_280, hasHistory: true });
      await playMore(lab.lab);
      await playPast(lab.lab);
      const { page } = lab;
      for (const path of screens) {
        await page.goto(`${lab.url}/#/k/${page_kit_id}${path}`);
        await page.reload();
        await page.locator('main .card, main .mapbox').first().waitFor();
        if (path === '/activity') await page.locator('#log .event').first().waitFor();
        await beginWalk(page);
        const faults: string[] = [];
        for (let n = 0; n < stops_max; n += 1) {
          await page.keyboard.press('Tab');
          const stop = await stopOf(page);
          if (!stop) break;
          if (!stop.isMarked || !stop.isInSight || !stop.follows)
            faults.push(`${path}: ${JSON.stringify(stop)}`);
        }
        expect([...faults, ...(await missedControls(page))]).toEqual([]);
      }
    },
  );

  const sheets = [
    ['', '.rail .kit-btn'],
    ['/assets', '.head button.btn'],
    [`/a/${ids.drone}`, '.command-row button'],
    [`/a/${more_ids.camera}`, '.command-row button'],
  ] as const;

  it.each(['auto', 'red'])(
    'opens sheets with Enter, keeps the focus in them, and returns it with Escape, in the theme %s',
    async (theme) => {
      const lab = await show({
        width_px: 1_280,
        isOfTwoKits: true,
        prepare: async (page) => {
          await page.addInitScript(
            (text) => localStorage.setItem('kit-console', text),
            JSON.stringify({ theme }),
          );
        },
      });
      await playMore(lab.lab);
      const { page } = lab;
      for (const [path, opener] of sheets) {
        await page.goto(`${lab.url}/#/k/${page_kit_id}${path}`);
        await page.locator(opener).first().focus();
        await page.keyboard.press('Enter');
        const dialog = page.getByRole('dialog');
        await dialog.waitFor();
        for (const colorScheme of theme === 'auto' ? (['light', 'dark'] as const) : (['dark'] as const)) {
          await page.emulateMedia({ colorScheme });
          expect([path, await faultsOf(page)]).toEqual([path, []]);
        }
        for (let n = 0; n < 12; n += 1) {
          await page.keyboard.press('Tab');
          // The browser itself stands between the last control and the first.
          const isIn = async (): Promise<boolean> =>
            page.evaluate(
              () =>
                document.activeElement === document.body ||
                document.activeElement?.closest('dialog') !== null,
            );
          expect([path, await isIn()]).toEqual([path, true]);
        }
        await page.keyboard.press('Escape');
        await dialog.waitFor({ state: 'detached' });
        await eventually('the focus is back', async () =>
          page
            .locator(opener)
            .first()
            .evaluate((element) => element === document.activeElement),
        );
      }
      expect([lab.complaints, lab.lab.dispatched]).toEqual([[], []]);
    },
    90_000,
  );

  it('goes to a screen with two letters, also of another script, finds with /, and lists this with ?', async () => {
    const lab = await show({ width_px: 1_280 });
    const { page } = lab;
    await page.keyboard.press('g');
    await page.keyboard.press('l');
    await page.locator('.rail [aria-current]', { hasText: word('nav.links') }).waitFor();
    await page.keyboard.press('?');
    await page.locator('dialog kbd').first().waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('k');
    expect(await faultsOf(page)).toEqual([]);
    expect(page.url()).toMatch(/\/links$/u);
    await page.keyboard.press('Escape');
    await page.locator('dialog').waitFor({ state: 'detached' });
    // A Cyrillic keyboard has other letters on these keys.
    await page.evaluate(() => {
      for (const [key, code] of [
        ['п', 'KeyG'],
        ['л', 'KeyK'],
      ] as const)
        document.body.dispatchEvent(new KeyboardEvent('keydown', { key, code, bubbles: true }));
    });
    await page.waitForURL(/#\/kits$/u);
    await page.getByRole('searchbox').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('gk');
    expect(await page.getByRole('searchbox').inputValue()).toBe('gk');
    expect(page.url()).toMatch(/#\/kits$/u);
  });

  it('filters the activity, changes the theme and opens an asset without a pointer', async () => {
    const lab = await show({ width_px: 390 });
    const { page } = lab;
    await page.goto(`${lab.url}/#/k/${page_kit_id}/assets`);
    await page.locator('.asset-row', { hasText: 'Drone 1' }).focus();
    await page.keyboard.press('Enter');
    await page.locator('#commands').waitFor();
    await page.locator('.bar .icon-btn').first().focus();
    await page.keyboard.press('Enter');
    await eventually('the list is open', () => page.url().endsWith('/assets'));
    await page.goto(`${lab.url}/#/k/${page_kit_id}/settings`);
    await page.locator('.setting .chip', { hasText: 'Red' }).focus();
    await page.keyboard.press('Space');
    await page.locator('html[data-theme=red]').waitFor();
    await page.goto(`${lab.url}/#/k/${page_kit_id}/activity`);
    await page.locator('.chip', { hasText: 'Alarms' }).focus();
    await page.keyboard.press('Space');
    await page.locator('.chip[aria-pressed=true]', { hasText: 'Alarms' }).waitFor();
  });
});
