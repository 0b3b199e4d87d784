/** What the whole daemon costs a gateway: how soon it is ready, its memory, its processor time with a kit at nominal size. */
import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buffer_file } from '../../src/kit/app/app.ts';
import { controlSocket } from '../../src/kit/config/config.ts';
import { localClient } from '../../src/kit/local/client.ts';
import { sleep } from '../../src/platform/time.ts';
import { startMosquitto } from '../support/brokers/broker.ts';
import { eventually } from '../support/eventually.ts';
import { findProgram, rootMissing } from '../support/peers.ts';
import { anonymousMb, processorSeconds, residentMb } from '../support/process-stats.ts';
import { type Peer, startCollectd } from './support/collectd.ts';
import { type Bench, type BenchContext, type Figure, median } from './figure.ts';
import { type Daemon, type Form, makeForms, startDaemon } from './support/footprint-daemon.ts';
import { assets_online, type Scene, withScene } from './support/footprint-scene.ts';
import { fillBuffer } from './support/prefill.ts';

const forever = new AbortController().signal;
const buffered_rows = 1_000_000;
const starts = 5;
const idle_s = 60;
const online_within_ms = 120_000;
/** Resident memory counts pages of files, which the kernel drops when it needs room: what counts is anonymous. */
const idle_memory = [
  { name: 'anon_idle_mb', of: anonymousMb },
  { name: 'rss_idle_mb', of: residentMb },
] as const;
const nominal_figures = 4;
/** Streams are asked for, cameras described, code compiled; what was given back and is needed after all has come again. */
const settle_ms = 60_000;

async function run({ dir, long, say, calm }: BenchContext): Promise<readonly Figure[]> {
  const forms = await makeForms(dir);
  say(`a buffer of ${buffered_rows} rows is being filled`);
  const full = join(dir, 'full');
  await mkdir(full);
  await fillBuffer(join(full, buffer_file), buffered_rows);
  const figures = [
    ...(await readyFigures(forms, dir, { full, calm })),
    ...(await idleFigures(forms, dir, calm)),
  ];
  if (rootMissing() || !findProgram('ip')) {
    const skipped = 'network namespaces need root and ip';
    return [...figures, { figure: 'anon_nominal_mb', value: null, unit: '', skipped }];
  }
  for (const form of forms) {
    await calm();
    figures.push(...(await nominalFigures(form, join(dir, `nominal-${form.name}`), long ? 3_600 : 60)));
    say(
      `${form.name}: ${figures
        .slice(-nominal_figures)
        .map((each) => `${each.figure} ${each.value?.toFixed(1)}`)
        .join(', ')}`,
    );
  }
  return figures;
}

/** As an installed package is: the gateway and its links, and no broker yet. */
const plain_drivers = [{ driver: 'gateway' }, { driver: 'links' }];

async function writeConfig(dir: string, settings: object): Promise<string> {
  await mkdir(dir, { recursive: true });
  const file = join(dir, 'config.yaml');
  const dirs = { state_dir: dir, runtime_dir: join(dir, 'run') };
  // JSON is YAML.
  await writeFile(file, JSON.stringify({ kit_id: randomUUID(), clock: 'trusted', ...dirs, ...settings }));
  return file;
}

async function readyFigures(
  forms: readonly Form[],
  dir: string,
  { full, calm }: { readonly full: string } & Pick<BenchContext, 'calm'>,
): Promise<readonly Figure[]> {
  const settings = { broker: { url: 'none' }, drivers: plain_drivers };
  const configs = {
    full: await writeConfig(full, settings),
    empty: await writeConfig(join(dir, 'empty'), settings),
  };
  const figures: Figure[] = [];
  for (const form of forms) {
    // The first fills the cache of compiled code, as the first start after the installation does.
    await (await startDaemon(form, configs.empty)).stop();
    const took = { full: [] as number[], empty: [] as number[] };
    for (let round = 0; round < starts; round += 1) {
      for (const buffer of ['empty', 'full'] as const) {
        await calm();
        const daemon = await startDaemon(form, configs[buffer]);
        took[buffer].push(daemon.ready_ms);
        await daemon.stop();
      }
    }
    figures.push({
      figure: `ready_ms ${form.name}`,
      value: median(took.full),
      unit: `ms, ${buffered_rows} rows`,
      against: 'an empty buffer',
      against_value: median(took.empty),
      target: '< 500',
    });
  }
  return figures;
}

/** All of them idle at once: what they cost each other is nothing while none of them works. */
async function idleFigures(
  forms: readonly Form[],
  dir: string,
  calm: () => Promise<void>,
): Promise<readonly Figure[]> {
  await calm();
  const broker = await startMosquitto();
  const running: { readonly form: Form; readonly daemon: Daemon }[] = [];
  let collectd: Peer | undefined;
  try {
    for (const form of forms) {
      const settings = { broker: { url: broker.url }, drivers: plain_drivers };
      const file = await writeConfig(join(dir, `idle-${form.name}`), settings);
      running.push({ form, daemon: await startDaemon(form, file) });
    }
    if (findProgram('collectd')) collectd = await startCollectd(dir, broker.port);
    await sleep(idle_s * 1_000, forever);
    const against = collectd ? 'collectd, /proc to MQTT' : 'collectd, not installed';
    const unit = `MB after ${idle_s} s`;
    const figures: Figure[] = [];
    for (const { name, of } of idle_memory) {
      const against_value = collectd ? await of(collectd.pid) : null;
      for (const { form, daemon } of running) {
        const value = await of(daemon.pid);
        figures.push({ figure: `${name} ${form.name}`, value, unit, against, against_value });
      }
    }
    return figures;
  } finally {
    for (const { daemon } of running) await daemon.stop();
    await collectd?.stop();
    await broker.stop();
  }
}

async function nominalFigures(form: Form, dir: string, seconds: number): Promise<readonly Figure[]> {
  await mkdir(dir);
  return withScene(dir, async (scene) => {
    const settings = { broker: { url: scene.broker_url }, drivers: scene.drivers };
    const daemon = await startDaemon(form, await writeConfig(dir, settings), scene.prefix);
    try {
      await untilOnline(dir);
      await sleep(settle_ms, forever);
      return await measure(form, daemon, scene, seconds);
    } finally {
      await daemon.stop();
    }
  });
}

/** Everything has to be there, or less than the nominal kit is measured. */
async function untilOnline(dir: string): Promise<void> {
  const client = localClient(controlSocket(join(dir, 'run')), forever);
  let missing = '';
  const holds = async (): Promise<boolean> => {
    const { assets, links } = await client.status();
    const online = assets.filter(({ status }) => status === 'online').length;
    const links_up = links?.filter(({ status }) => status === 'online' || status === 'standby').length;
    missing = `${online} assets and ${links_up} links`;
    return online === assets_online && links_up === 4;
  };
  await eventually('the kit is complete', holds, online_within_ms).catch((error: unknown) => {
    throw new Error(`only ${missing} came online`, { cause: error });
  });
}

async function measure(
  form: Form,
  { pid }: Daemon,
  { subscriber }: Scene,
  seconds: number,
): Promise<readonly Figure[]> {
  await subscriber.reset();
  const before = { cpu_s: await processorSeconds(pid), rss_mb: await residentMb(pid) };
  await sleep(seconds * 1_000, forever);
  const rss_mb = await residentMb(pid);
  const anonymous_mb = await anonymousMb(pid);
  const cpu_pct = ((await processorSeconds(pid)) - before.cpu_s) * (100 / seconds);
  const { messages } = await subscriber.report();
  if (messages === 0) throw new Error('nothing reached the broker');
  const rate = `${(messages / seconds).toFixed(1)} messages/s`;
  return [
    {
      figure: `anon_nominal_mb ${form.name}`,
      value: anonymous_mb,
      unit: 'MB, without pages of files',
      target: '<= 100',
    },
    {
      figure: `rss_nominal_mb ${form.name}`,
      value: rss_mb,
      unit: 'MB, with pages of files',
    },
    {
      figure: `rss_growth_mb ${form.name}`,
      value: rss_mb - before.rss_mb,
      unit: `MB in ${seconds} s`,
      target: '< 5',
    },
    {
      figure: `cpu_nominal_pct ${form.name}`,
      value: cpu_pct,
      unit: `% of one core, ${rate}`,
      target: '< 5',
    },
  ];
}

export const bench: Bench = { name: 'footprint', run };
