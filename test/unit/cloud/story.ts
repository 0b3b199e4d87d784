/** A day of a kit as its messages, and all that a store keeps of it. */
import { packBatch } from '../../../src/contract/batch/pack.ts';
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { Changes } from '../../../src/cloud/changes.ts';
import { Ingest, type IngestParts } from '../../../src/cloud/ingest/ingest.ts';
import { history_classes, type HistoryMessage } from '../../../src/cloud/history/message.ts';
import { newBudget, readHistory } from '../../../src/cloud/history/reading/reader.ts';
import { makeKey } from '../../../src/cloud/principal.ts';
import { readMessage, type Reception } from '../../../src/cloud/read-message.ts';
import type { PartnerAsset } from '../../../src/cloud/stored/stored.ts';
import type { Webhook } from '../../../src/cloud/webhooks/enqueue.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { registeredWebhook } from '../../support/service/registered-webhook.ts';
import { asset_id, kit_id, samples, task_id } from '../../support/contract-samples.ts';
import type { Store } from '../../../src/cloud/store/sql-store.ts';

export const start_ms = Date.UTC(2026, 10, 21, 10);

export interface Sent {
  readonly channel: string;
  readonly seq: number;
  /** Null: an empty payload. */
  readonly data: JsonObject | null;
  readonly epoch?: number;
  readonly time_ms?: number;
  readonly time_quality?: 'unsynced' | undefined;
  readonly kit?: string;
  readonly retained?: boolean;
}

/** As the broker delivers it. */
export function received(sent: Sent): Reception {
  const { channel, seq, data, epoch = 17, time_ms = start_ms + seq, time_quality } = sent;
  const { kit = kit_id, retained = false } = sent;
  const text = data ? writeEnvelope({ epoch, seq, time_ms, time_quality }, JSON.stringify(data)) : '';
  const reception = readMessage(upTopic(kit, channel), Buffer.from(text), retained);
  if (!reception) throw new Error(`not taken: ${channel}`);
  return reception;
}

type Packed = Parameters<typeof packBatch>[0][number];

/** A batch from the buffer of the kit. */
export function batchOf(items: readonly (Omit<Packed, 'epoch'> & { readonly epoch?: number })[]): Reception {
  const packed = packBatch(
    items.map(({ channel, epoch = 17, seq, time_ms, data }) => ({ channel, epoch, seq, time_ms, data })),
    { historical: true },
  );
  const reception = readMessage(upTopic(kit_id, channels.batch), packed);
  if (!reception) throw new Error('not a batch');
  return reception;
}

/** Divides all that has landed. */
export async function divide(store: Store, now_ms = start_ms): Promise<void> {
  while ((await store.compactHistory(now_ms, true)) > 0);
}

export async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

/** The history of a kit, in order, however much it is. */
export async function historyOf(
  store: Store,
  { kit = kit_id, order = 'asc' }: { readonly kit?: string; readonly order?: 'asc' | 'desc' } = {},
): Promise<HistoryMessage[]> {
  const always = { from_ms: 0, to_ms: Number.MAX_SAFE_INTEGER };
  const stretch = { kit_id: kit, classes: history_classes, ...always, order };
  return collected(readHistory(store, stretch, { ...newBudget(), until_ms: Infinity }));
}

/** Registers a receiver of webhooks, with a key for it. */
export async function addHook(
  store: Store,
  chosen: Pick<Webhook, 'types'> & Partial<Pick<Webhook, 'webhook_id' | 'kits' | 'severity_min'>>,
) {
  const { key } = makeKey({ label: 'test', scopes: ['webhooks'], kits: '*', expires_ms: null }, start_ms);
  await store.addKey(key);
  const about = { webhook_id: 'hook', url: 'https://app.example.com/hook', kits: [kit_id], ...chosen };
  await store.addWebhook(registeredWebhook({ ...about, key_id: key.key_id, created_ms: start_ms }));
  return key;
}

/** Stores what is taken, and logs it; it ends with `ends`. */
export function startIngest(parts: Pick<IngestParts, 'store'> & Partial<IngestParts>) {
  const ends = new AbortController();
  const log = recordingLog();
  const plain = { changes: new Changes(), log, group_ms: 20, onCommitted: () => undefined };
  return { ingest: new Ingest({ ...plain, signal: ends.signal, ...parts }), log, ends };
}

/** What a kit without any fault reports of itself. */
export const calm: JsonObject = {
  ...samples['kitState'],
  degraded: [],
  outbox: { rows: 0, bytes: 0, oldest: null },
};

export const truck = (id: string): PartnerAsset => ({
  kit_id,
  asset_id: id,
  asset_key: `${kit_id}:partner:${id}`,
  name: 'Truck',
  type: 'vehicle',
  vendor: null,
  model: null,
  metadata: {},
  parent_id: null,
  created_ms: start_ms,
  created_by: 'test',
});

/** Ids of many assets. */
export const idOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

export const gps = (seq: number, lat: number): Sent & { readonly data: JsonObject } => ({
  channel: channels.feed(asset_id, 'gps'),
  seq,
  data: { lat, lon: 8.5, alt_m: null, ground_speed: null, heading: null },
});

/** A day of a kit, in the order in which it was observed. */
export const story: readonly Sent[] = [
  { channel: channels.asset(asset_id), seq: 1, data: samples['announcement'] ?? {} },
  { channel: channels.commands(asset_id), seq: 2, data: samples['commandList'] ?? {} },
  { channel: channels.telemetry, seq: 3, data: { battery: 80, battery_charging: false } },
  gps(4, 47.1),
  {
    channel: channels.event(asset_id, 'asset_status'),
    seq: 5,
    data: { status: 'offline', reason: 'silent' },
  },
  gps(6, 47.2),
  { channel: channels.telemetry, seq: 7, data: { battery: 79 } },
  { channel: channels.task(task_id), seq: 8, data: report('running', 1) },
  { channel: channels.task(task_id), seq: 9, data: report('completed', 2) },
  { channel: channels.event(asset_id, 'asset_status'), seq: 10, data: { status: 'online', reason: null } },
];

export function report(status: string, revision: number): JsonObject {
  return { task_id, asset_id, command_name: 'arm', status, revision, result: {} };
}

export async function everything(store: Store) {
  return {
    kit: await store.kit(kit_id),
    assets: await store.assets(kit_id),
    commands: await store.commands(kit_id, asset_id),
    feeds: await store.feeds(kit_id, asset_id),
    tasks: (await store.tasks(kit_id, { limit: 10 })).map((task) => ({ ...task, created_ms: 0 })),
    acks: await store.acks(kit_id),
  };
}
