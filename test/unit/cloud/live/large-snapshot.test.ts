/** The snapshot of a kit with large feeds and many assets: bounded, since the service holds all of it for a client that does not read. */
import { once } from 'node:events';
import { afterEach, beforeEach, expect, it, onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { assetId } from '../../../../src/contract/identity.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { serverFrame, type ServerFrame } from '../../../../src/cloud/api/frames.ts';
import { kit_id, samples } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

const assets = Array.from({ length: 6 }, (_, n) => assetId(kit_id, `asset-${n}`));
const feeds = Array.from({ length: 8 }, (_, n) => `f${n}`);
/** A character of three bytes. */
const large = '高'.repeat(60_000);

let lab: ServiceLab;
beforeEach(async () => {
  lab = await startServiceLab(kit_id);
  await lab.publish(channels.state, samples['kitState'] ?? {});
  for (const id of assets) {
    await lab.publish(channels.asset(id), { ...samples['announcement'], id });
    await lab.publish(channels.commands(id), samples['commandList'] ?? {});
    for (const feed of feeds) await lab.publish(channels.feed(id, feed), { large });
  }
});
afterEach(async () => lab.stop());

it('is followed by what it has no room for, in separate frames', { tags: 'long' }, async () => {
  const url = `${lab.url.replace('http', 'ws')}/api/kits/${kit_id}/ws`;
  const socket = new WebSocket(url, { headers: { 'x-api-key': lab.key } });
  const sizes: number[] = [];
  const assets_seen = new Set<string>();
  const commands_seen = new Set<string>();
  const feeds_seen = new Set<string>();
  const see = (frame: ServerFrame): void => {
    if (frame.type === 'snapshot') {
      for (const { id } of frame.assets) assets_seen.add(id);
      for (const id of Object.keys(frame.commands)) commands_seen.add(id);
      for (const [id, some] of Object.entries(frame.feeds))
        for (const feed of Object.keys(some)) feeds_seen.add(`${id} ${feed}`);
    }
    if (frame.type === 'asset') assets_seen.add(frame.asset.id);
    if (frame.type === 'commands') commands_seen.add(frame.asset_id);
    if (frame.type === 'feed') feeds_seen.add(`${frame.asset_id} ${frame.feed}`);
  };
  socket.on('message', (raw: Buffer) => {
    sizes.push(raw.length);
    see(serverFrame.parse(JSON.parse(raw.toString('utf8'))));
  });
  onTestFinished(() => socket.terminate());
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'subscribe', assets: '*' }));
  await eventually('every feed has come', () => feeds_seen.size === assets.length * feeds.length);
  expect([...assets_seen].sort()).toEqual([...assets].sort());
  expect([...commands_seen].sort()).toEqual([...assets].sort());
  expect(Math.max(...sizes)).toBeLessThan(1_200_000);
  // Each of them once.
  expect(sizes.length).toBeLessThan(1 + assets.length * (2 + feeds.length));
});
