/** The plain map, where there is no WebGL. */
import { describe, expect, it } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { ids, page_kit_id } from '../../support/service/page-lab.ts';
import { pageScene } from '../../support/service/page-scene.ts';
import { peerMissing } from '../../support/peers.ts';

describe.skipIf(peerMissing('chromium-headless-shell'))('Without WebGL', () => {
  const { show } = pageScene();

  it('the plain map is drawn, with marks, rings and tap to fly', async () => {
    const lab = await show({ width_px: 390 });
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/a/${ids.drone}`);
    await lab.page.locator('.map .mark').first().waitFor();
    await eventually('the base map was tried', async () =>
      lab.page.evaluate(() =>
        performance.getEntriesByType('resource').some(({ name }) => name.endsWith('/maplibre-gl.js')),
      ),
    );
    await eventually('it is gone', async () => (await lab.page.locator('.base').count()) === 0);
    expect(await lab.page.locator('.map .ring circle').count()).toBe(5);
    expect(await lab.page.locator('.map-tag.low').count()).toBe(0);
    expect(lab.strangers).toEqual([]);
  });
});
