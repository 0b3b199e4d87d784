/** What the page costs: its first view on the wire, and the processor of a phone, four times slower than this one, that watches a busy kit. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { sleep } from '../../src/platform/time.ts';
import { loadPage, type Page, pageOnDemand, type PageSource } from '../../src/cloud/http/page/page-files.ts';
import { bundlePage } from '../../systemd/package/bundle.ts';
import { eventually } from '../support/eventually.ts';
import { channels } from '../../src/contract/topics.ts';
import { samples } from '../support/contract-samples.ts';
import { kitIds, openKits } from '../support/service/page-fleet.ts';
import {
  announce,
  fly,
  openPage,
  page_kit_id,
  type PageLab,
  startBrowser,
} from '../support/service/page-lab.ts';
import { findProgram } from '../support/peers.ts';
import { withDirectory } from '../support/temporary.ts';
import { type Bench, type BenchContext, type Figure, median } from './figure.ts';

const forever = new AbortController().signal;
const slowdown = 4;
const messages_per_s = 50;
/** The page draws four times a second. */
const draws_per_s = 4;
const batch_ms = 100;
const settle_ms = 3_000;
const fleet_kits = 40;

type Browser = Awaited<ReturnType<typeof startBrowser>>;

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
  const page = await source();
  const { first_kb, language_kb, world_kb, all_kb } = sizesOf(page);
  const sources = sizesOf(await loadPage());
  const libraries = ['maplibre-gl.js', 'maplibre-gl-worker.js', 'pmtiles.js'].map(
    async (name) => (await page.library(name))?.bodies.gzip.length ?? 0,
  );
  const map_kb = (await Promise.all(libraries)).reduce((sum, bytes) => sum + bytes, 0) / 1_000 + world_kb;
  const size = { figure: 'first_view_kb', value: first_kb, unit: 'kB gzip', target: '<= 64' };
  const others: readonly Figure[] = [
    { figure: 'all_own_code_kb', value: all_kb, unit: 'kB gzip', target: '<= 110' },
    { figure: 'language_kb', value: language_kb, unit: 'kB gzip', target: '<= 10' },
    {
      figure: 'map_libraries_and_world_kb',
      value: map_kb,
      unit: 'kB gzip',
      target: 'when a map is opened',
    },
    { figure: 'sources_first_view_kb', value: sources.first_kb, unit: 'kB gzip' },
    { figure: 'sources_all_own_code_kb', value: sources.all_kb, unit: 'kB gzip' },
  ];
  if (!findProgram('chromium-headless-shell')) {
    const skipped = 'chromium-headless-shell is not installed';
    return [size, ...others, { figure: 'cpu_pct', value: null, unit: '%', skipped }];
  }
  await calm();
  const browser = await startBrowser();
  const counts = [20, 200];
  const figures: Figure[] = [size, ...others];
  try {
    for (const [name, network, target] of networks) {
      const value = await readyAfter(browser, source, network, long ? 9 : 3);
      figures.push({ figure: `ready_${name}_ms`, value, unit: 'ms, median, slow core', target });
    }
    const draw = 'ms of script, style and layout a draw, slow core';
    for (const assets of counts) {
      const busy = await watch(browser, source, assets, long ? 30 : 10);
      say(`${assets} assets: heap ${busy.heap_mb.toFixed(1)} MB`);
      const figure = `cpu_${assets}_assets_pct`;
      figures.push({ figure, value: busy.task_pct, unit: '% of a slow core', target: '<= 10' });
      figures.push({
        figure: `draw_${assets}_assets_ms`,
        value: busy.draw_ms,
        unit: draw,
        against: 'the same rows as text',
        against_value: busy.rewritten_ms,
        target: assets === 20 ? '<= 8' : '<= 16',
      });
    }
    const fleet = await watchFleet(browser, source, fleet_kits, long ? 30 : 10);
    const figure = `draw_${fleet_kits}_kits_ms`;
    figures.push({ figure, value: fleet.draw_ms, unit: draw, target: '<= 16' });
  } finally {
    await browser.close();
  }
  return figures;
}

/** From the address to the kit's values, with an empty cache and a cookie of before. */
async function readyAfter(
  browser: Browser,
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
    return median(took_ms);
  } finally {
    await opened.stop();
  }
}

/** Lets the page watch this many drones for some seconds. */
async function watch(browser: Browser, source: PageSource, assets: number, seconds: number) {
  const opened = await openPage(browser, { source, bypassesPolicy: true });
  const { lab, page } = opened;
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
    const busy = await busyWhile(opened, seconds, (step) => void fly(lab, step / assets, ids[step % assets]));
    return { ...busy, rewritten_ms: await rewriteRows(opened) };
  } finally {
    await opened.stop();
  }
}

/** The list of this many kits, each of which reports once a second. */
async function watchFleet(browser: Browser, source: PageSource, kits: number, seconds: number) {
  const opened = await openPage(browser, { source, width_px: 1_280 });
  try {
    await openKits(opened, kits);
    const ids = kitIds(kits);
    const { kitTelemetry } = samples;
    return await busyWhile(opened, seconds, (step) => {
      const telemetry = { ...kitTelemetry, battery: 40 + (step % 50) };
      void opened.lab.publish(channels.telemetry, telemetry, { kit: ids[step % kits] ?? '' });
    });
  } finally {
    await opened.stop();
  }
}

/**
 * What the main thread of the page has spent, in seconds of a processor that is four times slower. They are those of the thread:
 * other programs of this machine do not count, as they would with a throttle, which works by the clock.
 */
async function slowCore({ page, context }: PageLab) {
  const chrome = await context.newCDPSession(page);
  await chrome.send('Performance.enable', { timeDomain: 'threadTicks' });
  return async (): Promise<Readonly<Record<string, number>>> => {
    const { metrics } = await chrome.send('Performance.getMetrics');
    const figures: Record<string, number> = {};
    for (const { name, value } of metrics)
      figures[name] = name.endsWith('Duration') ? slowdown * value : value;
    return figures;
  };
}

/** What lies between two readings: script, style and layout. */
function drawnIn(before: Readonly<Record<string, number>>, after: Readonly<Record<string, number>>): number {
  return ['Script', 'RecalcStyle', 'Layout']
    .map((name) => (after[`${name}Duration`] ?? 0) - (before[`${name}Duration`] ?? 0))
    .reduce((sum, each) => sum + each, 0);
}

/** How busy the main thread of the page is while messages come. */
async function busyWhile(opened: PageLab, seconds: number, publish: (step: number) => void) {
  const read = await slowCore(opened);
  let step = 0;
  const flight = setInterval(() => {
    for (let i = 0; i < (messages_per_s * batch_ms) / 1_000; i += 1) publish((step += 1));
  }, batch_ms);
  try {
    await sleep(settle_ms, forever);
    const before = await read();
    await sleep(seconds * 1_000, forever);
    const after = await read();
    const task_s = (after['TaskDuration'] ?? 0) - (before['TaskDuration'] ?? 0);
    return {
      task_pct: (100 * task_s) / seconds,
      draw_ms: (1_000 * drawnIn(before, after)) / seconds / draws_per_s,
      heap_mb: (after['JSHeapUsedSize'] ?? 0) / 1e6,
    };
  } finally {
    clearInterval(flight);
  }
}

const rewrites = 10;

/** The alternative: the list of assets written as text and laid out, by the same slow core. */
async function rewriteRows(opened: PageLab): Promise<number> {
  const read = await slowCore(opened);
  const before = await read();
  await opened.page.evaluate((times) => {
    const list = document.querySelector('.asset-row')?.closest('ul');
    const rows = list?.innerHTML ?? '';
    const copy = document.createElement('ul');
    copy.className = list?.className ?? '';
    list?.after(copy);
    for (let i = 0; i < times; i += 1) {
      copy.replaceChildren(document.createRange().createContextualFragment(rows));
      copy.getBoundingClientRect();
    }
  }, rewrites);
  return (1_000 * drawnIn(before, await read())) / rewrites;
}

export const bench: Bench = { name: 'page', run };
