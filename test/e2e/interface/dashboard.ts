/** Statements on the dashboard, in a browser. The numbers are those of statements.md. */
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type Scene, scene_ms } from '../../support/kit/interface-scene.ts';
import { peerMissing } from '../../support/peers.ts';
import { startBrowser } from '../../support/service/page-lab.ts';

const page_ms = 30_000;
/** One for all forms. */
let browser: Promise<Browser> | undefined;
afterAll(async () => (await browser)?.close());

export function describeDashboard(scene: Scene): void {
  describe.skipIf(peerMissing('chromium-headless-shell'))('dashboard', () => {
    let context: BrowserContext;
    let page: Page;
    let kit: string;
    beforeAll(async () => {
      browser ??= startBrowser();
      context = await (await browser).newContext({ viewport: { width: 1_280, height: 900 } });
      kit = `/api/kits/${scene.kit_id}`;
      page = await context.newPage();
      page.setDefaultTimeout(page_ms);
      await page.goto(`${scene.url}/#key=${encodeURIComponent(scene.key)}&kit=${scene.kit_id}`);
      await page.locator('.asset-row').first().waitFor();
    }, scene_ms);
    afterAll(async () => context?.close());

    const show = async (path: string): Promise<void> => {
      await page.goto(`${scene.url}/#/k/${scene.kit_id}${path}`);
    };
    const create = async (body: object): Promise<string> =>
      (await scene.ask(`${kit}/assets`, { body: { type: 'vehicle', ...body } })).body.id;

    it('8.15 nests a child under its parent in the tree of assets', { timeout: 60_000 }, async () => {
      const parent_id = await create({ name: 'Carrier' });
      await create({ name: 'Mast', parent_id });
      await show('/assets');
      await page.locator('.asset-row', { hasText: 'Mast' }).waitFor();
      const rows = await page
        .locator('.asset-row')
        .evaluateAll((found) =>
          found.map((row) => `${row.className} ${row.querySelector('b')?.textContent}`),
        );
      const at = rows.findIndex((row) => row.includes('Carrier'));
      expect(rows.slice(at, at + 2)).toEqual([
        expect.stringMatching(/depth-0.* Carrier$/u),
        expect.stringMatching(/depth-1.* Mast$/u),
      ]);
      const left = async (name: string): Promise<number> =>
        page.locator('.asset-row', { hasText: name }).evaluate((row) => {
          const { paddingInlineStart } = getComputedStyle(row.querySelector('a') ?? row);
          return row.getBoundingClientRect().left + Number.parseFloat(paddingInlineStart);
        });
      expect(await left('Mast')).toBeGreaterThan(await left('Carrier'));
      // It stays there below the kit's own assets, too: the camera of the scene that stands under another one.
      expect(rows.some((row) => /depth-1.* Yard$/u.test(row))).toBe(true);
    });

    it('9.4 asks before it dispatches a command that requires approval', { timeout: 60_000 }, async () => {
      const tasks = async (): Promise<number> =>
        (await scene.ask(`${kit}/assets/${scene.drone}/tasks`)).body.tasks.length;
      const before = await tasks();
      await show(`/a/${scene.drone}`);
      await page.locator('.command-row button', { hasText: /^Disarm/iu }).click();
      const form = page.locator('form.command');
      await form.locator('button[type=submit]').click();
      const dialog = page.locator('dialog[aria-labelledby=confirm-title]');
      await dialog.waitFor();
      expect(await tasks()).toBe(before);
      await dialog.locator('.btn.plain').first().click();
      await dialog.waitFor({ state: 'detached' });
      expect(await tasks()).toBe(before);
      await form.locator('button[type=submit]').click();
      await dialog.locator('button.hold').hover();
      await eventually('the press starts', async () => {
        await page.mouse.down();
        return (await page.locator('.held').count()) > 0;
      });
      await eventually('it is dispatched', async () => (await tasks()) === before + 1, page_ms);
      await page.mouse.up();
      const [task] = (await scene.ask(`${kit}/assets/${scene.drone}/tasks`)).body.tasks;
      expect(task).toMatchObject({ command_name: 'disarm' });
    });

    it('12.19 turns the arrow of an asset on the map to its bearing', { timeout: 60_000 }, async () => {
      const id = await create({ name: 'Rover' });
      const push = async (bearing: number): Promise<void> => {
        const { status } = await scene.ask(`${kit}/assets/${id}/location`, {
          body: { lat: 47.392, lon: 8.543, bearing },
        });
        expect(status).toBe(204);
      };
      await push(90);
      await show('/map');
      const arrow = page.locator('svg a.mark[aria-label="Rover"] path.arrow');
      await arrow.waitFor();
      expect(await arrow.getAttribute('transform')).toBe('rotate(90)');
      await push(275.4);
      await eventually(
        'the arrow turns without a reload',
        async () => (await arrow.getAttribute('transform')) === 'rotate(275)',
        page_ms,
      );
    });
  });
}
