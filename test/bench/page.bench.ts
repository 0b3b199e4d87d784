/** What the page costs: its first view on the wire, and the processor of a phone, four times slower than this one, that watches a busy kit. */
import { loadPage } from '../../src/service/http/page/page-files.ts';
import { sleep } from '../../src/platform/time.ts';
import { eventually } from '../support/eventually.ts';
import { announce, fly, openPage, page_kit_id, startBrowser } from '../support/service/page-lab.ts';
import { findProgram } from '../support/peers.ts';
import type { Bench, BenchContext, Figure } from './figure.ts';

const forever = new AbortController().signal;
const slowdown = 4;
const messages_per_s = 50;
/** The page draws four times a second. */
const draws_per_s = 4;
const batch_ms = 100;
const settle_ms = 3_000;

async function run({ long, calm, say }: BenchContext): Promise<readonly Figure[]> {
  const none = { against: '-', against_value: null };
  const { index, files, library } = await loadPage();
  const html = index.bodies.identity.toString();
  const bytesOf = (isWanted: (name: string) => boolean): number =>
    [...files].reduce((sum, [name, { bodies }]) => sum + (isWanted(name) ? bodies.gzip.length : 0), 0);
  const kb = (index.bodies.gzip.length + bytesOf((name) => html.includes(`/${name}"`))) / 1_000;
  const language_kb = bytesOf((name) => name.startsWith('words/de')) / 1_000;
  /** Data, fetched with the map. */
  const world_kb = bytesOf((name) => name === 'views/map/world.js') / 1_000;
  const all_kb = (index.bodies.gzip.length + bytesOf(() => true)) / 1_000 - language_kb - world_kb;
  const libraries = ['maplibre-gl.js', 'maplibre-gl-worker.js', 'pmtiles.js'].map(
    async (name) => (await library(name))?.bodies.gzip.length ?? 0,
  );
  const map_kb = (await Promise.all(libraries)).reduce((sum, bytes) => sum + bytes, 0) / 1_000 + world_kb;
  const size = { figure: 'first_view_kb', value: kb, unit: 'kB gzip', ...none, target: '<= 64' };
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
  ];
  if (!findProgram('chromium')) {
    const skipped = 'chromium is not installed';
    return [size, ...others, { figure: 'cpu_pct', value: null, unit: '%', ...none, target: '', skipped }];
  }
  await calm();
  const browser = await startBrowser();
  const counts = long ? [20, 200] : [20];
  const figures: Figure[] = [size, ...others];
  try {
    for (const assets of counts) {
      const { task_pct, script_pct, heap_mb } = await watch(browser, assets, long ? 30 : 10);
      say(`${assets} assets: script ${script_pct.toFixed(0)} %, heap ${heap_mb.toFixed(1)} MB`);
      const figure = `cpu_${assets}_assets_pct`;
      figures.push({ figure, value: task_pct, unit: '% of a slow core', ...none, target: '< 50' });
      figures.push({
        figure: `draw_${assets}_assets_ms`,
        value: (10 * task_pct) / draws_per_s,
        unit: 'ms a draw on a slow core, frames included',
        ...none,
        target: assets === 20 ? '<= 8' : '<= 16',
      });
    }
  } finally {
    await browser.close();
  }
  return figures;
}

/** Lets the page watch for some seconds, and answers how busy its main thread was. */
async function watch(browser: Awaited<ReturnType<typeof startBrowser>>, assets: number, seconds: number) {
  const opened = await openPage(browser);
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
        script_pct: 100 * spent('ScriptDuration'),
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
