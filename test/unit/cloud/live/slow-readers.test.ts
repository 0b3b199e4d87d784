/** Clients that read slowly while kits change much: what waits for all of them together is bounded, and other clients notice nothing. */
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { assetId } from '../../../../src/contract/identity.ts';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { bytesOf, waiting_bytes_max } from '../../../../src/cloud/live/kit-follower.ts';
import { texts } from '../../../../src/cloud/texts.ts';
import { kit_id, samples } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

const assets = [assetId(kit_id, 'one'), assetId(kit_id, 'two')];
const feeds = 110;
/** 6 kB of text, and twenty times that in memory. */
const hollow: JsonObject = { v: Array.from({ length: 2_000 }, () => []) };

let lab: ServiceLab;
const sockets: WebSocket[] = [];
beforeEach(async () => {
  lab = await startServiceLab(kit_id);
  await lab.publish(channels.state, samples['kitState'] ?? {});
  for (const id of assets) await lab.publish(channels.asset(id), { ...samples['announcement'], id });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.terminate();
  await lab.stop();
});

async function follow() {
  const url = `${lab.url.replace('http', 'ws')}/api/kits/${kit_id}/ws`;
  const socket = new WebSocket(url, { headers: { 'x-api-key': lab.key } });
  sockets.push(socket);
  const seen = { snapshots: 0, feeds: new Set<string>(), closed: false };
  socket.on('close', () => (seen.closed = true));
  socket.on('message', (raw: Buffer) => {
    const frame = JSON.parse(raw.toString('utf8')) as {
      readonly type: string;
      readonly feed?: string;
      readonly feeds?: Readonly<Record<string, object>>;
    };
    if (frame.type === 'snapshot') seen.snapshots += 1;
    const names = [frame.feed ?? [], Object.values(frame.feeds ?? {}).flatMap((each) => Object.keys(each))];
    for (const feed of names.flat()) seen.feeds.add(feed);
  });
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'subscribe', assets: '*' }));
  await eventually('the snapshot has come', () => seen.snapshots === 1);
  return { socket, seen };
}

describe('what waits for clients that read slowly', () => {
  it('is forgotten beyond a limit for all of them, for a new snapshot; no other client notices', async () => {
    const slow = [await follow(), await follow()];
    const other = await follow();
    for (const { socket } of slow) socket.pause();
    for (let n = 1; n <= feeds; n += 1) {
      await lab.publish(channels.feed(assets[n % 2] ?? '', `f${n}`), hollow);
      // As a kit does, it leaves readers the time to keep up.
      if (n % 10 === 0) await eventually('the other client has it', () => other.seen.feeds.size === n);
    }
    expect(other.seen).toMatchObject({ snapshots: 1, closed: false });
    for (const { socket } of slow) socket.resume();
    await eventually('so have they', () => slow.every(({ seen }) => seen.feeds.size === feeds));
    expect(Math.max(...slow.map(({ seen }) => seen.snapshots))).toBeGreaterThan(1);
    expect(slow.some(({ seen }) => seen.closed)).toBe(false);
    const lines = lab.log.lines.filter(({ sentence }) => sentence === texts.log_slow_readers);
    expect(lines).toMatchObject([{ level: 'warn', facts: { kit_id } }]);
  });

  it('counts as what it takes in memory', () => {
    const message = { feed: 'f', time_ms: 0, data: hollow };
    const bytes = bytesOf({ kind: 'feed', kit_id, asset_id: '', message });
    expect(bytes).toBeGreaterThan(10 * JSON.stringify(hollow).length);
    expect(2 * feeds * bytes).toBeGreaterThan(1.5 * waiting_bytes_max);
  });
});
