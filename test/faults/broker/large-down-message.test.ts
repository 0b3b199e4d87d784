/** A down message that is large, or too large: the kit goes on sending, within a bounded memory. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { downTopic } from '../../../src/contract/topics.ts';
import { sleep } from '../../../src/platform/time.ts';
import { eventually } from '../../support/eventually.ts';
import { test_kit } from '../../support/gps.ts';
import { kitAt } from '../../support/brokers/kit-scene.ts';
import { headerOf, type Peer, string, uint16 } from '../../support/brokers/scripted-broker.ts';

const config = downTopic(test_kit, { kind: 'config' });
/** Of a slow link. */
const piece_every_ms = 250;
const never = new AbortController().signal;
const piece = Buffer.alloc(64 * 1024, 0x20);
/** What 100 MB may keep alive: read buffers of both ends and the pieces under way. */
const kept_bytes_max = 20_000_000;

/** Bytes that are still referenced: measured after a collection, since garbage may lie around for as long as V8 likes. */
function keptBytes(): number {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc()');
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** The beginning of a QoS 1 message on `down/config`; the bytes of its payload are to follow. */
function begin(peer: Peer, payload_bytes: number): void {
  const head = [string(config), uint16(9), ...(peer.version === 5 ? [Buffer.from([0])] : [])];
  peer.write(Buffer.concat([headerOf(0x33, Buffer.concat(head).length + payload_bytes), ...head]));
}

describe('a large message from the cloud', () => {
  it(
    'does not end the connection while it comes over a slow link and PUBACKs wait behind it',
    { tags: 'long' },
    async () => {
      const { broker, kit } = await kitAt({});
      await eventually('connected', () => kit.uplink.online);
      const waiting: number[] = [];
      broker.follow({ onPublish: ({ packet_id }) => waiting.push(packet_id) });
      const [peer] = broker.peers;
      const pieces = 28;
      if (peer) begin(peer, pieces * 8_000);
      kit.send('feed', 0, { lat: 1 });
      for (let n = 0; n < pieces; n++) {
        await sleep(piece_every_ms, never);
        peer?.write(Buffer.alloc(8_000, 0x20));
      }
      await eventually('it is acknowledged', () => broker.acknowledged.includes(9));
      for (const packet_id of waiting) peer?.puback(packet_id);
      await eventually('the position is delivered', () => kit.outbox.ledger().delivered === 1);
      expect(broker.peers).toHaveLength(1);
    },
  );

  it.each(['auto', '3.1.1'] as const)(
    'of 100 MB is discarded and named, and nothing of it is kept in memory, with protocol: %s',
    { tags: 'long' },
    async (protocol) => {
      const { broker, kit, lines } = await kitAt({}, { protocol });
      await eventually('connected', () => kit.uplink.online);
      const [peer] = broker.peers;
      const before_bytes = keptBytes();
      let peak_bytes = 0;
      const pieces = 1_600;
      if (peer) begin(peer, pieces * piece.length);
      for (let n = 0; n < pieces; n++) {
        peer?.write(piece);
        if (n % 16 === 0) await nextTurn();
        if (n % 160 === 159) peak_bytes = Math.max(peak_bytes, keptBytes());
      }
      kit.send('alarm', 0, { detected: true });
      await eventually('it is acknowledged', () => broker.acknowledged.includes(9));
      await eventually('the alarm is delivered', () =>
        broker.published.some(({ topic }) => topic.includes('/up/event/')),
      );
      expect(peak_bytes - before_bytes).toBeLessThan(kept_bytes_max);
      expect(broker.peers).toHaveLength(1);
      expect(lines.filter((line) => line.includes(config))).toHaveLength(1);
    },
  );
});
