/** The page as the package has it, bundled: every screen with its styles, the second language, the base map. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadPage, pageOnDemand } from '../../../src/cloud/http/page/page-files.ts';
import { bundlePage } from '../../../systemd/package/bundle.ts';
import { eventually } from '../../support/eventually.ts';
import { faultsOf, page_kit_id } from '../../support/service/page-lab.ts';
import { playMore, screens } from '../../support/service/page-kit.ts';
import { pageScene } from '../../support/service/page-scene.ts';
import { peerMissing } from '../../support/peers.ts';
import { makeDirectory } from '../../support/temporary.ts';

const root = join(import.meta.dirname, '../../..');

describe.skipIf(peerMissing('chromium-headless-shell'))('The page of the package', () => {
  const { show } = pageScene({ hasWebGl: true });
  let dir: string;
  let out: URL;
  beforeAll(async () => {
    dir = await makeDirectory();
    await bundlePage(root, join(dir, 'page'));
    out = pathToFileURL(`${join(dir, 'page')}/`);
  });
  afterAll(async () => rm(dir, { recursive: true }));

  it('consists of few files, whose modules of the first view the first file names', async () => {
    const { index, files } = await loadPage(out);
    // Screens that are fetched when they are opened are a file each.
    expect(files.size).toBeLessThan(40);
    const html = index.bodies.identity.toString();
    const preloads = [...html.matchAll(/modulepreload" href="\/page\/[^/]+\/([^"]+)"/gu)].map(
      ([, name]) => name,
    );
    expect(preloads).toEqual(expect.arrayContaining(['main.js', 'preact.js', 'htm.js']));
    expect(preloads).not.toContain('links-screen.js');
  });

  it('shows every screen in German without an error', async () => {
    const lab = await show({
      hasHistory: true,
      source: pageOnDemand(out),
      prepare: async (page) => {
        await page.addInitScript(() =>
          localStorage.setItem('kit-console', '{"language":"de","theme":"day"}'),
        );
      },
    });
    await playMore(lab.lab);
    for (const path of screens) {
      await lab.page.goto(`${lab.url}/#/k/${page_kit_id}${path}`);
      await lab.page.locator('main .card, main .mapbox').first().waitFor();
      expect(await faultsOf(lab.page)).toEqual([]);
    }
    expect(await lab.page.locator('html').getAttribute('lang')).toBe('de');
    expect([...lab.complaints, ...lab.strangers]).toEqual([]);
  }, 120_000);

  it('loads the libraries of the map and their worker', async () => {
    const lab = await show({ source: pageOnDemand(out) });
    await lab.page.goto(`${lab.url}/#/k/${page_kit_id}/map`);
    await lab.page.locator('main canvas').waitFor();
    await eventually('the worker runs', () => lab.page.workers().length > 0);
    expect(lab.complaints).toEqual([]);
  });
});
