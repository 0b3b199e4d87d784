/** The page for eyes and kits that are not the usual ones: zoomed, in forced colours, with several kits, one that falls silent, a queue that drains. */
import { describe, expect, it } from 'vitest';
import { channels } from '../../../src/contract/topics.ts';
import { silent_after_ms } from '../../../src/cloud/api/views.ts';
import { eventually } from '../../support/eventually.ts';
import { faultsOf, other_kit_id, page_kit_id } from '../../support/service/page-lab.ts';
import { pageScene } from '../../support/service/page-scene.ts';
import { word } from '../../support/service/page-words.ts';
import { peerMissing } from '../../support/peers.ts';

describe.skipIf(peerMissing('chromium-headless-shell'))('the page', () => {
  const { show, openDrone } = pageScene();

  it('fits at a zoom of 200 %, on a laptop and with the letters of a phone twice as large', async () => {
    const lab = await show({ width_px: 640, scale: 2 });
    await openDrone(lab);
    expect(await faultsOf(lab.page)).toEqual([]);
    const overhang = async (): Promise<number> =>
      lab.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    expect(await overhang()).toBeLessThanOrEqual(0);
    await lab.page.setViewportSize({ width: 390, height: 844 });
    await lab.page.evaluate(() => {
      document.documentElement.style.fontSize = '200%';
    });
    expect(await overhang()).toBeLessThanOrEqual(0);
  });

  it('says the same in the colours that the person has forced, where backgrounds are gone', async () => {
    const lab = await show();
    await lab.page.emulateMedia({ forcedColors: 'active' });
    await openDrone(lab);
    expect(await faultsOf(lab.page)).toEqual([]);
    const unseen = await lab.page.evaluate(() =>
      [...document.querySelectorAll('.btn, .icon-btn')]
        .filter((button) => button.checkVisibility())
        .filter((button) => {
          const { borderTopWidth, borderTopStyle, outlineStyle } = getComputedStyle(button);
          return (
            borderTopStyle === 'none' && outlineStyle === 'none' && Number.parseFloat(borderTopWidth) === 0
          );
        })
        .map((button) => button.outerHTML.slice(0, 120)),
    );
    expect(unseen).toEqual([]);
    const marker = lab.page.locator('#map svg.map');
    const paints = await marker.evaluate((map) =>
      [...map.querySelectorAll('text, path, circle, line, polyline')]
        .filter((shape) => {
          const { stroke, fill } = getComputedStyle(shape);
          const canvas = getComputedStyle(document.body).backgroundColor;
          return [stroke, fill].every((paint) => paint === 'none' || paint === canvas);
        })
        .map((shape) => shape.outerHTML.slice(0, 120)),
    );
    expect(paints).toEqual([]);
  });

  it('watches the kit that is picked among several, and nothing of the one before', async () => {
    const { page, lab, url } = await show({ isOfTwoKits: true });
    await page.waitForURL(/#\/kits$/u);
    const row = (name: string) => page.locator('.asset-row', { hasText: name });
    await page.locator('.kit-row').nth(1).waitFor();
    await page.goto(`${url}/#/k/${page_kit_id}`);
    await row('Drone 1').waitFor();
    await page.locator('.kit-btn:visible').click();
    const chooser = page.getByRole('dialog', { name: word('kits.choose') });
    expect(await chooser.locator('.choose-row').count()).toBe(2);
    await chooser.locator(`a[href$="${other_kit_id}"]`).click();
    await row('Other drone').waitFor();
    expect(await row('Drone 1').count()).toBe(0);
    await lab.publish(channels.telemetry, { battery: 12 });
    await lab.publish(channels.telemetry, { battery: 64 }, { kit: other_kit_id });
    await eventually('the battery of this kit', async () =>
      (await page.locator('#battery .num').innerText()).startsWith('64'),
    );
    await page.goto(`${url}/#/k/${page_kit_id}`);
    await row('Drone 1').waitFor();
    expect(await row('Other drone').count()).toBe(0);
  });

  it('reports how old the word on the queue is, when it will be empty, and what was stored last', async () => {
    const lab = await show();
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/links`);
    const uplink = lab.page.locator('#uplink');
    const report = async (rows: number, said_ms: number): Promise<void> =>
      lab.lab.report({ rows, bytes: rows * 100, oldest: new Date(said_ms).toISOString() }, said_ms);
    await uplink.getByText(word('queue.notKnown')).waitFor();
    const now_ms = Date.now();
    await report(400, now_ms + 1_000);
    await report(300, now_ms + 21_000);
    await uplink.getByText('about 1 min').waitFor();
    await uplink.getByText(/^300 \(/u).waitFor();
    expect(await uplink.innerText()).toMatch(/Last stored here\s+\d+ s ago/u);
    await report(0, now_ms + 22_000);
    await uplink.getByText(word('queue.none'), { exact: true }).first().waitFor();
  });

  it('shows automatically that the kit has fallen silent, and since when', async () => {
    const lab = await show();
    await lab.lab.heardAt(Date.now() - silent_after_ms + 2_000);
    await lab.page.locator('h1:visible, .path-card h1').getByText(word('hero.offline')).first().waitFor();
    await lab.page.locator('.attention a.bad', { hasText: word('attention.kitOffline') }).waitFor();
    expect(await lab.page.locator('.attention').innerText()).toContain('1 h 05 min');
    await openDrone(lab);
    expect(await lab.page.locator('#commands .lock').innerText()).toBe(word('lock.kitOffline'));
  });
});
