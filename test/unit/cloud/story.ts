/** A day of a kit as its messages, and all that a store keeps of it. */
import { writeEnvelope } from '../../../src/contract/envelope.ts';
import type { JsonObject } from '../../../src/contract/json.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { readMessage, type Reception } from '../../../src/cloud/read-message.ts';
import { asset_id, kit_id, samples, task_id } from '../../support/contract-samples.ts';
import type { Store } from '../../../src/cloud/store/sql-store.ts';

export const start_ms = Date.UTC(2026, 10, 21, 10);

export interface Sent {
  readonly channel: string;
  readonly seq: number;
  readonly data: JsonObject;
  readonly epoch?: number;
  readonly time_ms?: number;
}

/** As the broker delivers it. */
export function received({ channel, seq, data, epoch = 17, time_ms = start_ms + seq }: Sent): Reception {
  const text = writeEnvelope({ epoch, seq, time_ms }, JSON.stringify(data));
  const reception = readMessage(upTopic(kit_id, channel), Buffer.from(text));
  if (!reception) throw new Error(`not taken: ${channel}`);
  return reception;
}

export const gps = (seq: number, lat: number): Sent => ({
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
