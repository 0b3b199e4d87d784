/** How long live messages take while a file is uploaded through the one queue of a narrow link. Needs root for network namespaces. */
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileReport } from '../../src/contract/files.ts';
import { KitFiles } from '../../src/kit/files/kit-files.ts';
import { Uploader } from '../../src/kit/files/uploader.ts';
import { openTransport } from '../../src/mqtt/socket.ts';
import { sleep } from '../../src/platform/time.ts';
import { startMosquitto, unthrottled } from '../support/brokers/broker.ts';
import { startSubscriber } from '../support/brokers/subscriber.ts';
import { enterNamespace } from '../support/gateway/enter-namespace.ts';
import { eventually } from '../support/eventually.ts';
import { startRelay } from '../support/gateway/wan-lab.ts';
import { type WireSettings, wireSettings } from '../support/gateway/wan-relay.ts';
import { flight, stamped } from '../support/gps.ts';
import { startConnector } from '../support/kit/connector.ts';
import { recordingLog } from '../support/recording-log.ts';
import { program } from '../support/peers.ts';
import { run as runProgram } from '../support/temporary.ts';
import type { Bench, BenchContext, Figure } from './figure.ts';

const cloud_ip = '10.99.0.2';
const warm_up_ms = 3_000;
const live_every_ms = 50;
const never = new AbortController().signal;

interface Link {
  readonly name: string;
  readonly wire: Partial<WireSettings>;
}
const links: readonly Link[] = [
  { name: '1_mbit', wire: { rate_kbit: 1_000, rtt_ms: 40, queue_ms_max: 2_000 } },
  { name: '256_kbit', wire: { rate_kbit: 256, rtt_ms: 40, queue_ms_max: 2_000 } },
  { name: '1_mbit_600_ms', wire: { rate_kbit: 1_000, rtt_ms: 600, queue_ms_max: 2_000 } },
];

interface Seen {
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly kbps: number;
}

/** A kit and the internet, each in a namespace, and a wire between them that the caller shapes. */
async function withWire<T>(
  fn: (
    set: (settings: Partial<WireSettings>) => Promise<void>,
    names: { kit: string; net: string },
  ) => Promise<T>,
): Promise<T> {
  const names = { kit: `kc-up-${process.pid}-kit`, net: `kc-up-${process.pid}-net` };
  const children: ChildProcess[] = [];
  try {
    for (const name of [names.kit, names.net]) {
      await runProgram('ip', 'netns', 'add', name);
      await runProgram('ip', '-n', name, 'link', 'set', 'lo', 'up');
    }
    const near = { namespace: names.kit, device: 'wan0' };
    const far = { namespace: names.net, device: 'isp0' };
    const relay = await startRelay([{ name: 'wire', near, far }], children);
    for (const [{ namespace, device }, ip] of [
      [near, '10.99.0.1'],
      [far, cloud_ip],
    ] as const) {
      await runProgram('ip', '-n', namespace, 'addr', 'add', `${ip}/24`, 'dev', device);
      await runProgram('ip', '-n', namespace, 'link', 'set', device, 'up');
    }
    return await fn(
      async (settings) => relay({ order: 'set', wire: 'wire', settings: wireSettings.parse(settings) }),
      names,
    );
  } finally {
    for (const child of children) child.kill('SIGKILL');
    for (const name of [names.kit, names.net])
      await runProgram('ip', 'netns', 'del', name).catch(() => undefined);
  }
}

/** Takes what comes and answers as tus does. */
async function startSink(net: string) {
  const leave = enterNamespace(net);
  let offset = 0;
  const server = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => (offset += chunk.length));
    request.on('end', () => response.writeHead(204, { 'upload-offset': String(offset) }).end());
  });
  await once(server.listen(0, cloud_ip), 'listening');
  leave();
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { port: address.port, server, bytes: () => offset };
}

async function measure(link: Link, seconds: number, isUploading: boolean, dir: string): Promise<Seen> {
  return withWire(async (set, names) => {
    const socket = join(dir, `${link.name}.sock`);
    const broker = await startMosquitto({
      socket,
      prefix: [program('ip'), 'netns', 'exec', names.net],
      conf: [...unthrottled, `listener 1883 ${cloud_ip}`, 'allow_anonymous true'],
    });
    const subscriber = await startSubscriber({ socket });
    const sink = await startSink(names.net);
    await set(link.wire);
    const leave = enterNamespace(names.kit);
    const ending = new AbortController();
    const connector = await startConnector({
      file: join(dir, `${link.name}-${isUploading}.db`),
      url: `mqtt://${cloud_ip}:1883`,
    });
    const { outbox } = connector;
    const log = recordingLog();
    const files = new KitFiles({
      kit_id: 'x',
      dir: join(dir, `files-${link.name}-${isUploading}`),
      limits: () => ({ bytes_max: 1e9, age_max_ms: 1e9, free_bytes_min: 0 }),
      outbox: {
        append({ data }) {
          const report = fileReport.parse(data);
          const answer = { want: 'upload', url: `http://127.0.0.1/u`, token: 't', expires_at: '' } as const;
          if (report.state === 'requesting') setImmediate(() => void uploader.answer(report.id, answer));
          return { epoch: 1, seq: 1 };
        },
        committed: async () => undefined,
      },
      now: Date.now,
      log,
      signal: ending.signal,
    });
    const uploader = new Uploader({
      files,
      rule: () => 'always',
      wayTo: async () => null,
      isBusy: () => outbox.dispatch.live_rows > 0,
      bytesPerS: () => 500_000,
      connect: async (_url, signal) =>
        openTransport(
          {
            url: `mqtt://${cloud_ip}:${sink.port}`,
            ca: undefined,
            cert: undefined,
            key: undefined,
            proxy: null,
          },
          signal,
        ),
      log,
      signal: ending.signal,
    });
    await files.open();
    if (isUploading)
      await files.add({
        kind: 'flight_log',
        asset_key: null,
        name: 'log.bin',
        at_ms: 0,
        content: { bytes: randomBytes(40_000_000) },
      });
    const running = uploader.run();
    const positions = flight();
    connector.send('feed', 0, stamped(positions.next().value));
    const fly = async (ms: number): Promise<void> => {
      const until_ms = performance.now() + ms;
      while (performance.now() < until_ms) {
        for (let drone = 0; drone < 4; drone += 1)
          connector.send('feed', drone, stamped(positions.next().value));
        await sleep(live_every_ms * 4, never);
      }
    };
    await eventually('the broker takes messages', () => connector.acknowledged > 0);
    await fly(warm_up_ms);
    await subscriber.reset();
    const before = sink.bytes();
    await fly(seconds * 1_000);
    const kbps = ((sink.bytes() - before) * 8) / seconds / 1_000;
    const { latency } = await subscriber.report();
    ending.abort();
    await running;
    await files.store.close();
    await connector.stop();
    leave();
    sink.server.closeAllConnections();
    sink.server.close();
    await subscriber.stop();
    await broker.stop();
    if (!latency) throw new Error('no live message arrived');
    return { ...latency, kbps };
  });
}

async function run({ long, dir, say, calm }: BenchContext): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const link of links) {
    await calm();
    const idle = await measure(link, long ? 60 : 15, false, dir);
    const seen = await measure(link, long ? 120 : 30, true, dir);
    const rate = link.wire.rate_kbit ?? 0;
    say(
      `${link.name}: live p50 ${seen.p50_ms.toFixed(0)} ms, p99 ${seen.p99_ms.toFixed(0)} ms (alone ${idle.p50_ms.toFixed(0)}, ${idle.p99_ms.toFixed(0)} ms), file ${seen.kbps.toFixed(0)} kbit/s`,
    );
    figures.push({
      figure: `${link.name}_added_p99_ms`,
      value: seen.p99_ms - idle.p99_ms,
      unit: `ms more than alone, at ${Math.round((seen.kbps / rate) * 100)} % of the rate`,
      against: 'without an upload',
      against_value: idle.p99_ms,
      target: '<= 100',
    });
  }
  return figures;
}

export const bench: Bench = { name: 'uploads', run };
