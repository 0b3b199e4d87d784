/** What the page costs: its first view on the wire, and the processor of a phone, four times slower than this one, that watches a busy kit. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { sleep } from '../../src/platform/time.ts';
import { loadPage, type Page, pageOnDemand, type PageSource } from '../../src/cloud/http/page/page-files.ts';
import { bundlePage } from '../../systemd/package/bundle.ts';
import { eventually } from '../support/eventually.ts';
import { announce, fly, openPage, page_kit_id, startBrowser } from '../support/service/page-lab.ts';
import { findProgram } from '../support/peers.ts';
import { withDirectory } from '../support/temporary.ts';
import type { Bench, BenchContext, Figure } from './figure.ts';

const forever = new AbortController().signal;
const slowdown = 4;
const messages_per_s = 50;
/** The page draws four times a second. */
const draws_per_s = 4;
const batch_ms = 100;
const settle_ms = 3_000;

interface Network {
  /** There and back. */
  readonly latency: number;
  /** Bytes a second. */
  readonly downloadThroughput: number;
  readonly uploadThroughput: number;
}
const networks: readonly (readonly [name: string, network: Network, target: string])[] = [
  ['wifi', { latency: 5, downloadThroughput: 2_500_000, uploadThroughput: 2_500_000 }, '<= 1000'],
  ['lte', { latency: 70, downloadThroughput: 1_000_000, uploadThroughput: 400_000 }, '<= 2500'],
];

const root = join(import.meta.dirname, '../..');

/** The page as the package has it. */
async function run(context: BenchContext): Promise<readonly Figure[]> {
  return withDirectory(async (dir) => {
    const out = join(dir, 'page');
    await bundlePage(root, out);
    return measure(pageOnDemand(pathToFileURL(`${out}/`)), context);
  });
}

/** What comes over the wire, in kB of gzip. */
function sizesOf({ index, files }: Page) {
  const html = index.bodies.identity.toString();
  const kbOf = (isWanted: (name: string) => boolean): number =>
    [...files].reduce((sum, [name, { bodies }]) => sum + (isWanted(name) ? bodies.gzip.length : 0), 0) /
    1_000;
  const index_kb = index.bodies.gzip.length / 1_000;
  const language_kb = kbOf((name) => /^(?:words\/)?de\b/u.test(name));
  /** Data, fetched with the map. */
  const world_kb = kbOf((name) => /^(?:views\/map\/)?world\.js$/u.test(name));
  return {
    first_kb: index_kb + kbOf((name) => html.includes(`/${name}"`)),
    language_kb,
    world_kb,
    all_kb: index_kb + kbOf(() => true) - language_kb - world_kb,
  };
}

async function measure(source: PageSource, { long, calm, say }: BenchContext): Promise<readonly Figure[]> {
  const none = { against: '-', against_value: null };
  const page = await source();
  const { first_kb, language_kb, world_kb, all_kb } = sizesOf(page);
  const sources = sizesOf(await loadPage());
  const libraries = ['maplibre-gl.js', 'maplibre-gl-worker.js', 'pmtiles.js'].map(
    async (name) => (await page.library(name))?.bodies.gzip.length ?? 0,
  );
  const map_kb = (await Promise.all(libraries)).reduce((sum, bytes) => sum + bytes, 0) / 1_000 + world_kb;
  const size = { figure: 'first_view_kb', value: first_kb, unit: 'kB gzip', ...none, target: '<= 64' };
  const others: readonly Figure[] = [
    { figure: 'all_own_code_kb', value: all_kb, unit: 'kB gzip', ...none, target: '<= 110' },
    { figure: 'language_kb', value: language_kb, unit: 'kB gzip', ...none, target: '<= 10' },
    {
      figure: 'map_libraries_and_world_kb',
      value: map_kb,
      unit: 'kB gzip',
      ...none,
      target: 'when a map is opened',
    },
    { figure: 'sources_first_view_kb', value: sources.first_kb, unit: 'kB gzip', ...none, target: '' },
    { figure: 'sources_all_own_code_kb', value: sources.all_kb, unit: 'kB gzip', ...none, target: '' },
  ];
  if (!findProgram('chromium-headless-shell')) {
    const skipped = 'chromium-headless-shell is not installed';
    return [size, ...others, { figure: 'cpu_pct', value: null, unit: '%', ...none, target: '', skipped }];
  }
  await calm();
  const browser = await startBrowser();
  const counts = long ? [20, 200] : [20];
  const figures: Figure[] = [size, ...others];
  try {
    for (const [name, network, target] of networks) {
      const value = await readyAfter(browser, source, network, long ? 9 : 3);
      figures.push({ figure: `ready_${name}_ms`, value, unit: 'ms, median, slow core', ...none, target });
    }
    for (const assets of counts) {
      const { task_pct, draw_pct, heap_mb, parts } = await watch(browser, source, assets, long ? 30 : 10);
      say(`${assets} assets: ${parts}, heap ${heap_mb.toFixed(1)} MB`);
      const figure = `cpu_${assets}_assets_pct`;
      figures.push({ figure, value: task_pct, unit: '% of a slow core', ...none, target: '<= 10' });
      figures.push({
        figure: `draw_${assets}_assets_ms`,
        value: (10 * draw_pct) / draws_per_s,
        unit: 'ms of script, style and layout a draw, slow core',
        ...none,
        target: assets === 20 ? '<= 8' : '<= 16',
      });
    }
  } finally {
    await browser.close();
  }
  return figures;
}

/** From the address to the kit's values, with an empty cache and a cookie of before. */
async function readyAfter(
  browser: Awaited<ReturnType<typeof startBrowser>>,
  source: PageSource,
  network: Network,
  times: number,
): Promise<number> {
  const opened = await openPage(browser, { source });
  try {
    await opened.page.locator('.page-link', { hasText: 'Live' }).waitFor();
    await opened.page.close();
    const took_ms: number[] = [];
    for (let i = 0; i < times; i += 1) {
      const page = await opened.context.newPage();
      const chrome = await opened.context.newCDPSession(page);
      await chrome.send('Network.enable');
      await chrome.send('Network.setCacheDisabled', { cacheDisabled: true });
      await chrome.send('Network.emulateNetworkConditions', { offline: false, ...network });
      await chrome.send('Emulation.setCPUThrottlingRate', { rate: slowdown });
      const begin_ms = performance.now();
      await page.goto(`${opened.url}/#/k/${page_kit_id}`, { waitUntil: 'commit' });
      await page.locator('.page-link', { hasText: 'Live' }).waitFor();
      await page.locator('.asset-row').first().waitFor();
      took_ms.push(performance.now() - begin_ms);
      await page.close();
    }
    return took_ms.toSorted((a, b) => a - b)[Math.floor(times / 2)] ?? 0;
  } finally {
    await opened.stop();
  }
}

/** Lets the page watch for some seconds, and answers how busy its main thread was. */
async function watch(
  browser: Awaited<ReturnType<typeof startBrowser>>,
  source: PageSource,
  assets: number,
  seconds: number,
) {
  const opened = await openPage(browser, { source });
  const { lab, page, context } = opened;
  try {
    const ids = Array.from(
      { length: assets },
      (_, i) => `${String(i).padStart(8, '0')}-40d5-591e-99b0-da01ff1f3341`,
    );
    for (const [i, id] of ids.entries())
      await announce(lab, id, { name: `Unit ${i}`, type: 'drone', protocol: 'mavlink' });
    await page.goto(`${opened.url}/#/k/${page_kit_id}/assets`);
    await eventually(
      'all are shown',
      async () => (await page.locator('.asset-row').count()) >= assets,
      30_000,
    );
    const chrome = await context.newCDPSession(page);
    await chrome.send('Emulation.setCPUThrottlingRate', { rate: slowdown });
    await chrome.send('Performance.enable', { timeDomain: 'timeTicks' });
    const read = async (): Promise<ReadonlyMap<string, number>> => {
      const { metrics } = await chrome.send('Performance.getMetrics');
      return new Map(metrics.map(({ name, value }) => [name, value]));
    };
    let step = 0;
    const flight = setInterval(() => {
      for (let i = 0; i < (messages_per_s * batch_ms) / 1_000; i += 1) {
        step += 1;
        void fly(lab, step / assets, ids[step % assets]);
      }
    }, batch_ms);
    try {
      await sleep(settle_ms, forever);
      const before = await read();
      await sleep(seconds * 1_000, forever);
      const after = await read();
      const spent = (name: string): number => ((after.get(name) ?? 0) - (before.get(name) ?? 0)) / seconds;
      return {
        task_pct: 100 * spent('TaskDuration'),
        draw_pct: 100 * (spent('ScriptDuration') + spent('RecalcStyleDuration') + spent('LayoutDuration')),
        parts: ['Task', 'Script', 'RecalcStyle', 'Layout']
          .map((name) => `${name} ${(1_000 * spent(`${name}Duration`)).toFixed(0)} ms`)
          .join(', '),
        heap_mb: (after.get('JSHeapUsedSize') ?? 0) / 1e6,
      };
    } finally {
      clearInterval(flight);
    }
  } finally {
    await opened.stop();
  }
}

export const bench: Bench = { name: 'page', run };
