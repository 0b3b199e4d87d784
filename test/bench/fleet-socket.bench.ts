/** What `/api/ws` costs with the summaries of 1,000 kits: time until all are there, memory and processor of each client. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';
import { sleep } from '../../src/platform/time.ts';
import { type Bench, type BenchContext, type Figure, median } from './figure.ts';

const program = fileURLToPath(new URL('processes/fleet-service-process.ts', import.meta.url));
const kits = 1_000;
const changes_per_s = 100;
/** The service takes 64 connections of one address. */
const clients = 48;
const at_once = 16;
const settle_ms = 3_000;
const never = new AbortController().signal;

interface Usage {
  readonly rss_mb: number;
  /** Heap and buffers after a collection. */
  readonly held_mb: number;
  readonly cpu_ms: number;
}

interface Place {
  readonly url: string;
  readonly key: string;
}

async function answerOf<T>(child: ChildProcess): Promise<T> {
  const [message] = (await once(child, 'message')) as [T];
  return message;
}

async function usageOf(
  child: ChildProcess,
  wanted: { readonly changes_per_s?: number } = {},
): Promise<Usage> {
  const answer = answerOf<Usage>(child);
  child.send(wanted);
  return answer;
}

/** Connects, subscribes, and resolves when the summaries of all kits are there. */
async function watch({
  url,
  key,
}: Place): Promise<{ socket: WebSocket; took_ms: number; bytes: () => number }> {
  const begin_ms = performance.now();
  const headers = { 'x-api-key': key };
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/ws`, { headers });
  let bytes = 0;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.on('error', reject);
  socket.on('close', (code) => reject(new Error(`the socket was closed with ${code}`)));
  socket.on('open', () => socket.send('{"type":"subscribe","summaries":true}'));
  socket.on('message', (data: Buffer) => {
    bytes += data.length;
    const frame = JSON.parse(data.toString()) as { readonly type: string; readonly left?: number };
    if (frame.type === 'summaries' && frame.left === 0) resolve();
  });
  await promise;
  return { socket, took_ms: performance.now() - begin_ms, bytes: () => bytes };
}

async function run({ long, calm, say }: BenchContext): Promise<readonly Figure[]> {
  const seconds = long ? 30 : 10;
  await calm();
  const child = fork(program, [String(kits), String(clients + 16)], { execArgv: ['--expose-gc'] });
  try {
    const place = await answerOf<Place>(child);
    const firsts: number[] = [];
    for (let i = 0; i < 9; i += 1) {
      const { socket, took_ms } = await watch(place);
      firsts.push(took_ms);
      const closed = once(socket, 'close');
      socket.close();
      await closed;
    }
    const alone = await usageOf(child);
    const spent = async (): Promise<number> => {
      await usageOf(child, { changes_per_s });
      await sleep(settle_ms, never);
      const before = await usageOf(child);
      await sleep(seconds * 1_000, never);
      const after = await usageOf(child);
      return (after.cpu_ms - before.cpu_ms) / seconds / 10;
    };
    const cpu_alone_pct = await spent();
    await usageOf(child, { changes_per_s: 0 });
    const watching: Awaited<ReturnType<typeof watch>>[] = [];
    let all_ms = 0;
    while (watching.length < clients) {
      const begun_ms = performance.now();
      watching.push(...(await Promise.all(Array.from({ length: at_once }, async () => watch(place)))));
      all_ms = Math.max(all_ms, performance.now() - begun_ms);
    }
    await sleep(settle_ms, never);
    const idle = await usageOf(child);
    const before_bytes = watching.reduce((sum, { bytes }) => sum + bytes(), 0);
    const cpu_watched_pct = await spent();
    const bytes = watching.reduce((sum, { bytes: each }) => sum + each(), 0) - before_bytes;
    for (const { socket } of watching) socket.terminate();
    say(
      `memory of the service alone ${alone.rss_mb.toFixed(0)} MB, with ${clients} clients ${idle.rss_mb.toFixed(0)} MB`,
    );
    const per_second = seconds + settle_ms / 1_000;
    return [
      { figure: 'first_summaries_ms', value: median(firsts), unit: 'ms, one client, 1,000 kits' },
      {
        figure: `first_summaries_${at_once}_at_once_ms`,
        value: all_ms,
        unit: 'ms until the last has all',
      },
      {
        figure: 'memory_a_client_kb',
        value: ((idle.held_mb - alone.held_mb) / clients) * 1e3,
        unit: 'kB of heap and buffers',
      },
      {
        figure: 'cpu_a_client_pct',
        value: (cpu_watched_pct - cpu_alone_pct) / clients,
        unit: `% of a core, ${changes_per_s} changed kits a second`,
        against: 'the service without clients',
        against_value: cpu_alone_pct,
      },
      {
        figure: 'traffic_a_client_kbit_s',
        value: (bytes * 8) / 1e3 / clients / per_second,
        unit: 'kbit/s before compression',
      },
    ];
  } finally {
    child.disconnect();
    await once(child, 'exit');
  }
}

export const bench: Bench = { name: 'fleet-socket', run };
