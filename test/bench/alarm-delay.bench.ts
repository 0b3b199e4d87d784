/** From a kit that reports what begins to the frame of its alarm on `/api/ws`: 40 kits that drain a backlog meanwhile, on PostgreSQL. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { sleep } from '../../src/platform/time.ts';
import { alarm_feed, PublishingKit } from '../faults/support/published.ts';
import { startMosquitto, unthrottled } from '../support/brokers/broker.ts';
import { startChild } from '../support/child.ts';
import { startPostgres } from '../support/database/postgres.ts';
import { command_file } from '../support/kit/kit.ts';
import { freePort } from '../support/ports.ts';
import type { Bench, BenchContext, Figure } from './figure.ts';

const kits_of_fleet = 40;
/** Messages of each; one in twenty is a batch of a backlog, with 25. */
const per_second = 5;
const never = new AbortController().signal;
const connects_within_ms = 120_000;

interface Sent {
  readonly what: string;
  readonly kit_id: string;
  readonly subject?: string;
}

async function run({ long, dir, calm, say }: BenchContext): Promise<readonly Figure[]> {
  await calm();
  const server = await startPostgres({ durable: true });
  const broker = await startMosquitto({ conf: unthrottled });
  const ends = new AbortController();
  const config = join(dir, 'service.yaml');
  const database_password_file = join(dir, 'password');
  const listen = `127.0.0.1:${await freePort()}`;
  const database = await server.newDatabase('kits');
  await writeFile(database_password_file, `${server.password}\n`, { mode: 0o600 });
  await writeFile(
    config,
    JSON.stringify({ broker: { url: broker.url }, database, database_password_file, listen }),
  );
  const service = startChild([command_file, 'service', '--config', config]);
  try {
    await service.printed(/service connected to the broker/u, connects_within_ms);
    const words = ['service', 'key', 'add', 'bench', '--all-kits', '--config', config];
    const key = (await startChild([command_file, ...words]).ended).stdout.trim();
    const kits = await Promise.all(
      Array.from({ length: kits_of_fleet }, async () => PublishingKit.connect(randomUUID(), broker.port)),
    );
    const seen_ms = new Map<string, number>();
    const socket = new WebSocket(`ws://${listen}/api/ws`, { headers: { 'x-api-key': key } });
    socket.on('message', (data: Buffer) => {
      const { alarms = [] } = JSON.parse(data.toString()) as { readonly alarms?: readonly Sent[] };
      const now_ms = performance.now();
      for (const { what, kit_id, subject = '' } of alarms) {
        const name = `${kit_id} ${subject}`;
        if (what === alarm_feed && !seen_ms.has(name)) seen_ms.set(name, now_ms);
      }
    });
    await once(socket, 'open');
    socket.send('{"type":"subscribe","alarms":true}');
    for (const kit of kits) kit.publish(per_second, ends.signal);
    await sleep(long ? 600_000 : 240_000, never);
    ends.abort();
    // What is not there after this time is lost.
    await sleep(10_000, never);
    socket.terminate();
    for (const kit of kits) kit.leave();
    const delays = kits
      .flatMap(({ kit_id, begun_ms }) =>
        [...begun_ms].map(([name, at_ms]) => (seen_ms.get(`${kit_id} ${name}`) ?? Infinity) - at_ms),
      )
      .sort((a, b) => a - b);
    const share = (part: number): number => delays[Math.floor((delays.length - 1) * part)] ?? Infinity;
    say(`${delays.length} alarms, median ${share(0.5).toFixed(0)} ms, the slowest ${share(1).toFixed(0)} ms`);
    const target = '2,000 ms';
    const unit = `ms, 99th percentile of ${delays.length} alarms`;
    return [{ figure: 'to_alarm_p99_ms', value: share(0.99), unit, target }];
  } finally {
    await service.end('SIGTERM');
    await broker.stop();
    await server.stop();
  }
}

export const bench: Bench = { name: 'alarm-delay', run };
