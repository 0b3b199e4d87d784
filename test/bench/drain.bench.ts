/** How a large backlog leaves: how soon it is ready, how fast it goes, and whether live messages suffer meanwhile. */
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { every, sleep } from '../../src/platform/time.ts';
import { startMosquitto, unthrottled } from '../support/brokers/broker.ts';
import { residentMb } from '../support/process-stats.ts';
import { startProxy, type LinkShape } from '../support/brokers/proxy.ts';
import { startSubscriber, type Subscriber } from '../support/brokers/subscriber.ts';
import { run as runProgram } from '../support/temporary.ts';
import { monotonic_us, type Sighting } from '../support/witness.ts';
import { fillFifo } from './engines/fifo.ts';
import type { EngineChoice } from './engines/engine.ts';
import type { Bench, BenchContext, Figure } from './figure.ts';
import { fillBuffer } from './support/prefill.ts';
import { startSubject, type Subject } from './support/subject.ts';

const rows = 1_000_000;
/** Enough to show what first in, first out means for live messages; all rows would take it three times as long. */
const fifo_rows = 300_000;
const drain_max_ms = 120_000;
const live = { kind: 'paced', per_second: 200, durabilities: ['lazy'], data: 'stamped' } as const;
/** 256 kbit/s and a round trip of 600 ms. */
const satellite: LinkShape = { delay_up_ms: 300, delay_down_ms: 300, rate_up_bytes: 32_000 };
const fifo = (file: string): EngineChoice => ({ kind: 'fifo', file, commit_ms: 100 });

interface Drain {
  readonly ready_s: number;
  /** From being connected until the last message of the backlog had arrived. */
  readonly seconds: number;
  readonly live_p99_ms: number;
  readonly rss_growth_mb: number;
}

/** Runs `fn` with an engine, a subscriber and a broker between them, perhaps over a bad link. */
async function withSubject<T>(
  choice: EngineChoice,
  shape: LinkShape | undefined,
  fn: (subject: Subject, subscriber: Subscriber) => Promise<T>,
): Promise<T> {
  const broker = await startMosquitto({ conf: unthrottled });
  const subscriber = await startSubscriber(broker.port);
  const proxy = shape ? await startProxy(broker.port, shape) : undefined;
  const url = proxy ? `mqtt://127.0.0.1:${proxy.port}` : broker.url;
  try {
    const subject = await startSubject({ choice, target: { url } });
    const result = await fn(subject, subscriber);
    await subject.close();
    return result;
  } finally {
    await proxy?.close();
    await subscriber.stop();
    await broker.stop();
  }
}

/** Drains all of it, with live messages beside it for `live_s`. */
async function drain(choice: EngineChoice, backlog: number, live_s: number): Promise<Drain> {
  return withSubject(choice, undefined, async (subject, subscriber) => {
    const begin_us = monotonic_us();
    const memory = watchMemory(subject.pid);
    const sent = await subject.load({ ...live, seconds: live_s });
    const deadline_ms = performance.now() + drain_max_ms;
    while ((await subject.report()).acknowledged < backlog + sent && performance.now() < deadline_ms) {
      await sleep(100, new AbortController().signal);
    }
    const rss_growth_mb = memory.growth_mb();
    const seen = await subscriber.report();
    const old = oldest(seen);
    if (seen.unique < backlog + sent) throw new Error(`${seen.unique} of ${backlog + sent} messages arrived`);
    return {
      ready_s: subject.took_ms / 1000,
      seconds: (old.last_us - begin_us) / 1e6,
      live_p99_ms: seen.latency?.p99_ms ?? Number.NaN,
      rss_growth_mb,
    };
  });
}

/** What leaves over the satellite in `seconds`; live messages that did not arrive at all have no latency. */
async function drainNarrow(choice: EngineChoice, seconds: number) {
  return withSubject(choice, satellite, async (subject, subscriber) => {
    await subject.load({ ...live, per_second: 5, seconds });
    await sleep(1_000, new AbortController().signal);
    const seen = await subscriber.report();
    const old = oldest(seen);
    const backlog_messages = seen.unique - (seen.latency?.count ?? 0);
    const per_s = backlog_messages / ((old.last_us - old.first_us) / 1e6);
    return { per_s, live_p99_ms: seen.latency?.p99_ms ?? null, live_arrived: seen.latency?.count ?? 0 };
  });
}

/** The epoch of the backlog: earlier than that of the live messages, and in the FIFO the only one. */
function oldest({ epochs }: Sighting) {
  const [first] = Object.entries(epochs).sort(([a], [b]) => Number(a) - Number(b));
  if (!first) throw new Error('nothing arrived');
  return first[1];
}

function watchMemory(pid: number): { growth_mb(): number } {
  const end = new AbortController();
  let first_mb: number | undefined;
  let most_mb = 0;
  every(200, end.signal, () => {
    void residentMb(pid).then((mb) => {
      first_mb ??= mb;
      most_mb = Math.max(most_mb, mb);
      return most_mb;
    });
  });
  return {
    growth_mb() {
      end.abort();
      return most_mb - (first_mb ?? most_mb);
    },
  };
}

async function run({ dir, say, calm, long }: BenchContext): Promise<readonly Figure[]> {
  const filled = join(dir, 'filled.db');
  const begin_ms = performance.now();
  await fillBuffer(filled, rows);
  say(`${rows} rows written in ${((performance.now() - begin_ms) / 1000).toFixed(1)} s`);
  const copy = async (name: string): Promise<string> => {
    const file = join(dir, `${name}.db`);
    await copyFile(filled, file);
    // Else the copy is still on its way to the disk while its backlog is measured.
    await runProgram('sync');
    return file;
  };
  const measured = async (name: string, drained: Promise<Drain>): Promise<Drain> => {
    const { ready_s, seconds, live_p99_ms, rss_growth_mb } = await drained;
    const memory = `memory +${Math.round(rss_growth_mb)} MB`;
    say(
      `${name}: ready ${ready_s.toFixed(2)} s, ${seconds.toFixed(1)} s, live p99 ${Math.round(live_p99_ms)} ms, ${memory}`,
    );
    return { ready_s, seconds, live_p99_ms, rss_growth_mb };
  };
  const empty = await withSubject(
    { kind: 'connector', file: join(dir, 'empty.db') },
    undefined,
    async (s) => s.took_ms,
  );
  await calm();
  const single = await measured(
    'singly',
    drain({ kind: 'connector', file: await copy('single'), batch_rows: 1 }, rows, 15),
  );
  await calm();
  const batched = await measured(
    'in batches',
    drain({ kind: 'connector', file: await copy('batched') }, rows, 3),
  );
  const fifo_file = join(dir, 'fifo.db');
  fillFifo(fifo_file, fifo_rows);
  await calm();
  const plain = await measured(
    `first in, first out, ${fifo_rows} rows`,
    drain(fifo(fifo_file), fifo_rows, 5),
  );
  const narrow_s = long ? 60 : 20;
  const narrow = await drainNarrow({ kind: 'connector', file: await copy('narrow') }, narrow_s);
  const narrow_fifo_file = join(dir, 'narrow-fifo.db');
  fillFifo(narrow_fifo_file, fifo_rows / 10);
  const narrow_plain = await drainNarrow(fifo(narrow_fifo_file), narrow_s / 2);
  say(
    `satellite: ${narrow.live_arrived} live messages arrived; first in, first out: ${narrow_plain.live_arrived}`,
  );
  const against = 'SQLite first in, first out';
  const scaled = (plain.seconds * rows) / fifo_rows;
  return [
    {
      figure: 'ready_s',
      value: single.ready_s,
      unit: 's, 1M rows',
      against: 'an empty buffer',
      against_value: empty / 1000,
      target: '< 1',
    },
    {
      figure: 'single_s',
      value: single.seconds,
      unit: 's, 1M rows',
      against: `${against}, scaled to 1M`,
      against_value: scaled,
      target: '< 30',
    },
    {
      figure: 'batched_s',
      value: batched.seconds,
      unit: 's, 1M rows',
      against: `${against}, scaled to 1M`,
      against_value: scaled,
      target: '< 6',
    },
    {
      figure: 'live_p99_ms',
      value: Math.max(single.live_p99_ms, batched.live_p99_ms),
      unit: 'ms at 200/s',
      against: `${against}, ${fifo_rows} rows`,
      against_value: plain.live_p99_ms,
      target: '< 150',
    },
    {
      figure: 'narrow_per_s',
      value: narrow.per_s,
      unit: 'msg/s, 256 kbit/s, 600 ms',
      against,
      against_value: narrow_plain.per_s,
      target: '>= 1000',
    },
    {
      figure: 'narrow_live_p99_ms',
      value: narrow.live_p99_ms,
      unit: 'ms at 5/s',
      against,
      against_value: narrow_plain.live_p99_ms,
      target: '< 600',
    },
    {
      figure: 'rss_growth_mb',
      value: Math.max(single.rss_growth_mb, batched.rss_growth_mb),
      unit: 'MB',
      against,
      against_value: plain.rss_growth_mb,
      target: '< 40',
    },
  ];
}

export const bench: Bench = { name: 'drain', run };
