/** The plain way to a durable queue: a table in SQLite on the main thread, sent first in, first out. */
import Database from 'better-sqlite3';
import { connectAsync } from 'mqtt';
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { every } from '../../../src/platform/time.ts';
import { flight, stamped, test_drones, test_kit } from '../../support/gps.ts';
import { window_messages, type Engine, type EngineChoice } from './engine.ts';
import type { Target } from './mqttjs.ts';

interface QueuedRow {
  readonly id: number;
  readonly topic: string;
  readonly payload: string;
}

const page_rows = 500;
const fill_commit_rows = 5_000;

/** Opens the file, connects, and sends what is in it. */
export async function openFifo(
  choice: Extract<EngineChoice, { kind: 'fifo' }>,
  target: Target,
): Promise<Engine> {
  const queue = openTable(choice.file);
  const client = await connectAsync(target.url, {
    protocolVersion: 5,
    reconnectPeriod: 0,
    clientId: `fifo-${process.pid}`,
  });
  client.on('error', () => undefined);
  const lost = new Promise<void>((resolve) => {
    client.once('close', resolve);
  });
  let next_id = queue.last() + 1;
  let read_to = 0;
  let page: readonly QueuedRow[] = [];
  let at = 0;
  let arrived: QueuedRow[] = [];
  let done: number[] = [];
  let outstanding = 0;
  let acknowledged = 0;

  const next = (): QueuedRow | undefined => {
    if (at >= page.length) {
      page = queue.after(read_to);
      at = 0;
    }
    const row = page[at];
    at += 1;
    if (row) read_to = row.id;
    return row;
  };
  const pump = (): void => {
    while (outstanding < window_messages) {
      const row = next();
      if (!row) return;
      outstanding += 1;
      client.publish(row.topic, row.payload, { qos: 1 }, (error) => {
        outstanding -= 1;
        if (error) return;
        acknowledged += 1;
        done.push(row.id);
        if (choice.commit_ms === 0) commit();
        else setImmediate(pump);
      });
    }
  };
  const commit = (): void => {
    if (arrived.length + done.length > 0) queue.commit(arrived, done);
    arrived = [];
    done = [];
    pump();
  };
  const end = new AbortController();
  if (choice.commit_ms > 0) every(choice.commit_ms, end.signal, commit);
  pump();
  return {
    send(durability, source, data) {
      arrived.push(queuedRow(next_id, durability, source, JSON.stringify(data)));
      next_id += 1;
      if (choice.commit_ms === 0) commit();
    },
    get acknowledged() {
      return acknowledged;
    },
    lost,
    async close() {
      end.abort();
      await client.endAsync(true);
      queue.close();
    },
  };
}

/** Fills a file with `rows` messages, as an outage would have. */
export function fillFifo(file: string, rows: number): void {
  const queue = openTable(file);
  const data = flight();
  for (let from = 1; from <= rows; from += fill_commit_rows) {
    const ids = Array.from(
      { length: Math.min(fill_commit_rows, rows - from + 1) },
      (_, offset) => from + offset,
    );
    queue.commit(
      ids.map((id) => queuedRow(id, 'lazy', id, JSON.stringify(stamped(data.next().value, 0)))),
      [],
    );
  }
  queue.close();
}

function queuedRow(id: number, durability: 'lazy' | 'sync', source: number, data: string): QueuedRow {
  const drone = test_drones[source % test_drones.length] ?? test_drones[0];
  const channel = durability === 'sync' ? channels.event(drone, 'gps') : channels.feed(drone, 'gps');
  const payload = writeEnvelope({ epoch: 1, seq: id, time_ms: Date.now() }, data);
  return { id, topic: upTopic(test_kit, channel), payload };
}

function openTable(file: string) {
  const database = new Database(file);
  database.pragma('journal_mode = wal');
  database.pragma('synchronous = full');
  database.exec('create table if not exists queue (id integer primary key, topic text, payload text) strict');
  const insert = database.prepare<[number, string, string]>('insert into queue values (?, ?, ?)');
  const remove = database.prepare<[number]>('delete from queue where id = ?');
  const page = database.prepare<[number, number], QueuedRow>(
    'select * from queue where id > ? order by id limit ?',
  );
  const last = database.prepare<[], { readonly id: number | null }>('select max(id) as id from queue');
  return {
    last: () => last.get()?.id ?? 0,
    after: (id: number) => page.all(id, page_rows),
    commit: database.transaction((arrived: readonly QueuedRow[], done: readonly number[]) => {
      for (const { id, topic, payload } of arrived) insert.run(id, topic, payload);
      for (const id of done) remove.run(id);
    }),
    close: () => database.close(),
  };
}
