/** What the whole daemon costs a gateway that has little to say: about one message a second. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { sleep, within } from '../../src/platform/time.ts';
import { startMosquitto } from '../support/brokers/broker.ts';
import { test_kit } from '../support/gps.ts';
import { processorSeconds, residentMb } from '../support/process-stats.ts';
import { startSubscriber } from '../support/brokers/subscriber.ts';
import type { Bench, BenchContext, Figure } from './figure.ts';
import { node_flags, startSubject } from './support/subject.ts';

const settle_ms = 5_000;
const stop_ms = 10_000;

interface Cost {
  readonly rss_mb: number;
  readonly cpu_pct: number;
}

async function costOf(pid: number, seconds: number): Promise<Cost> {
  const before_s = await processorSeconds(pid);
  await sleep(seconds * 1000, new AbortController().signal);
  const used_s = (await processorSeconds(pid)) - before_s;
  return { rss_mb: await residentMb(pid), cpu_pct: (used_s * 100) / seconds };
}

/** The daemon with the gateway itself as its only device. */
async function measureDaemon(dir: string, seconds: number): Promise<Cost & { readonly per_second: number }> {
  const broker = await startMosquitto();
  const subscriber = await startSubscriber(broker.port);
  const config = {
    kit_id: test_kit,
    clock: 'trusted',
    state_dir: dir,
    runtime_dir: dir,
    broker: { url: broker.url },
    telemetry: { floor_s: 1 },
    log: { level: 'warn' },
    drivers: [{ driver: 'gateway', options: { interval_s: 1 } }],
  };
  const file = join(dir, 'config.yaml');
  // JSON is YAML too.
  await writeFile(file, JSON.stringify(config));
  const entry = new URL('../../src/kit-connector.mjs', import.meta.url).pathname;
  const daemon = spawn(process.execPath, [...node_flags, entry, 'run', '--config', file], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const exited = once(daemon, 'exit');
  try {
    await subscriber.until(({ packets }) => packets > 0, stop_ms);
    await sleep(settle_ms, new AbortController().signal);
    await subscriber.reset();
    const cost = await costOf(daemon.pid ?? 0, seconds);
    const { packets } = await subscriber.report();
    return { ...cost, per_second: packets / seconds };
  } finally {
    daemon.kill('SIGTERM');
    if (!(await within(stop_ms, exited))) daemon.kill('SIGKILL');
    await subscriber.stop();
    await broker.stop();
  }
}

/** MQTT.js alone in a process, publishing as much. */
async function measurePlain(seconds: number): Promise<Cost> {
  const broker = await startMosquitto();
  const subject = await startSubject({
    choice: { kind: 'mqttjs', protocol: 5, keepalive_s: 30 },
    target: { url: broker.url },
  });
  const loaded = subject.load({
    kind: 'paced',
    per_second: 1,
    seconds: seconds + settle_ms / 1000,
    durabilities: ['lazy'],
    data: 'stamped',
  });
  await sleep(settle_ms, new AbortController().signal);
  const cost = await costOf(subject.pid, seconds);
  await loaded;
  await subject.close();
  await broker.stop();
  return cost;
}

async function run({ dir, long, say, calm }: BenchContext): Promise<readonly Figure[]> {
  const seconds = long ? 60 : 20;
  await calm();
  const daemon = await measureDaemon(dir, seconds);
  say(`${daemon.per_second.toFixed(2)} messages a second`);
  const plain = await measurePlain(seconds);
  const against = 'MQTT.js alone at 1/s';
  return [
    { figure: 'rss_mb', value: daemon.rss_mb, unit: 'MB', against, against_value: plain.rss_mb, target: '-' },
    {
      figure: 'cpu_pct',
      value: daemon.cpu_pct,
      unit: '% of one core',
      against,
      against_value: plain.cpu_pct,
      target: '-',
    },
  ];
}

export const bench: Bench = { name: 'idle', run };
