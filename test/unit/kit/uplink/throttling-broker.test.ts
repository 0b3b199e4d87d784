/**
 * Brokers of clouds that limit messages a second, each in its own way: AWS IoT Core leaves what is above 100 a second without a PUBACK
 * (its quotas; aws-iot-device-sdk-js-v2's `AwsIotCoreDefaults`) or answers 0x97 to MQTT 5, others end the connection (thingsboard#14003);
 * and one that refuses retained messages with a DISCONNECT, as Azure Event Grid did. The limit is small here, so that seconds show it.
 */
import { describe, expect, it } from 'vitest';
import { texts as outbox_texts } from '../../../../src/kit/outbox/texts.ts';
import { kitAt } from '../../../support/brokers/kit-scene.ts';
import type { Peer, Published } from '../../../support/brokers/scripted-broker.ts';
import { eventually } from '../../../support/eventually.ts';

const limit = 20;
const messages = 50;

/** Calls `beyond` for each message above the limit of its second, and acknowledges the others. */
function limited(beyond: (message: Published, peer: Peer) => void) {
  let second = { from_ms: 0, messages: 0 };
  const counts = { beyond: 0 };
  const onPublish = (message: Published, peer: Peer): void => {
    const now_ms = performance.now();
    if (now_ms - second.from_ms >= 1_000) second = { from_ms: now_ms, messages: 0 };
    second.messages += 1;
    if (second.messages <= limit) {
      peer.puback(message.packet_id);
      return;
    }
    counts.beyond += 1;
    beyond(message, peer);
  };
  return { onPublish, counts };
}

async function deliverThrough(onPublish: (message: Published, peer: Peer) => void) {
  const { broker, kit, lines } = await kitAt({ onPublish }, { batch_rows: 1, ack: 'broker' });
  await eventually('connected', () => kit.uplink.online);
  for (let n = 0; n < messages; n += 1) kit.send('alarm', n, { n });
  await eventually('all are delivered', () => kit.outbox.ledger().buffered === 0, 100_000);
  expect(kit.outbox.ledger()).toMatchObject({ accepted: messages, delivered: messages });
  return { connections: broker.peers.length, problems: kit.uplink.problems(), lines };
}

describe('a broker that limits messages a second', () => {
  it(
    'by leaving them unacknowledged gets fewer after one reconnect, and all of them',
    { tags: 'long' },
    async () => {
      const { onPublish } = limited(() => undefined);
      const { connections, problems } = await deliverThrough(onPublish);
      expect(connections).toBeLessThanOrEqual(3);
      expect(problems.join()).toContain('messages_per_s_max');
    },
  );

  it('by a code in its answer keeps its connection', async () => {
    const { onPublish, counts } = limited((message, peer) => peer.puback(message.packet_id, 0x97));
    const { connections, problems, lines } = await deliverThrough(onPublish);
    expect(counts.beyond).toBeGreaterThan(2);
    expect(connections).toBe(1);
    expect(problems.join()).toContain('messages_per_s_max');
    expect(lines.join()).not.toContain(outbox_texts.kind_refused);
  }, 120_000);

  it('is told from one whose quota has run out, which refuses them all', async () => {
    let taken = 0;
    const { kit } = await kitAt(
      {
        onPublish: ({ packet_id }, peer) => peer.puback(packet_id, (taken += 1) <= limit ? 0 : 0x97),
      },
      { batch_rows: 1, ack: 'broker' },
    );
    await eventually('connected', () => kit.uplink.online);
    for (let n = 0; n < messages; n += 1) kit.send('alarm', n, { n });
    const refused = [{ kind: 'event', code: 0x97, reason: 'quota exceeded (0x97)' }];
    await expect.poll(() => kit.outbox.dispatch.refusedKinds(), { timeout: 20_000 }).toEqual(refused);
  }, 60_000);

  it('by ending the connection gets fewer after it', { tags: 'long' }, async () => {
    const { onPublish } = limited((_message, peer) => peer.disconnect(0x96));
    const { connections } = await deliverThrough(onPublish);
    expect(connections).toBeLessThanOrEqual(8);
  });
});

/**
 * Azure Event Grid before 2025 (docs.chariot.io, "a publish request with a retain flag fails and closes the connection"), AWS IoT Core
 * before 2021 and without `iot:RetainPublish` since (aws-iot-device-sdk-embedded-C#1747, aws-crt-python#367; with a retained will
 * aws-iot-device-sdk-python-v2#113).
 */
describe('a broker that takes no retained messages', () => {
  const hang_up = (_message: Published, peer: Peer): void => peer.hangUp();
  const rows: readonly {
    readonly by: string;
    readonly version?: 4 | 5;
    readonly will?: (peer: Peer) => void;
    readonly publish: (message: Published, peer: Peer) => void;
    readonly connections: number;
  }[] = [
    { by: 'a DISCONNECT with its code', publish: (_, peer) => peer.disconnect(0x9a), connections: 2 },
    {
      by: 'a PUBACK with its code',
      publish: ({ packet_id }, peer) => peer.puback(packet_id, 0x9a),
      connections: 1,
    },
    { by: 'closing, in MQTT 3.1.1', version: 4, publish: hang_up, connections: 5 },
    { by: 'closing, in MQTT 5', publish: hang_up, connections: 4 },
    { by: 'another code of DISCONNECT', publish: (_, peer) => peer.disconnect(0x87), connections: 4 },
    {
      by: 'closing at the will',
      version: 4,
      will: (peer) => peer.hangUp(),
      publish: hang_up,
      connections: 8,
    },
    { by: 'another code for the will', will: (peer) => peer.connack(0x87), publish: hang_up, connections: 4 },
  ];
  it.each(rows)(
    'by $by gets none any more',
    async ({ version, will, publish, connections }) => {
      const { broker, kit } = await kitAt(
        {
          onConnect(peer) {
            if (peer.version === (version ?? peer.version)) {
              if (will && peer.retains_will) will(peer);
              else peer.connack();
            } else peer.connack(1);
          },
          onPublish(message, peer) {
            if (message.retain) publish(message, peer);
            else peer.puback(message.packet_id);
          },
        },
        { ack: 'broker' },
      );
      kit.send('presence', 0, { online: true });
      await eventually('delivered', () => kit.outbox.ledger().delivered === 1, 20_000);
      expect(kit.uplink.online).toBe(true);
      expect(broker.peers.length).toBeLessThanOrEqual(connections);
      expect(kit.uplink.problems()).toEqual([expect.stringContaining('retained')]);
      expect(broker.published.findLast(({ topic }) => topic.endsWith('/up/state'))?.retain).toBe(false);
    },
    80_000,
  );

  it('is not one that goes on to end connections in which nothing is retained', async () => {
    const { broker, kit } = await kitAt(
      {
        onPublish(message, peer) {
          const isAnswered = broker.peers.length > 4 || (broker.peers.length === 3 && !message.retain);
          if (isAnswered) peer.puback(message.packet_id);
          else peer.hangUp();
        },
      },
      { ack: 'broker' },
    );
    kit.send('presence', 0, { online: true });
    await eventually('delivered', () => kit.outbox.ledger().delivered === 1, 20_000);
    expect(broker.published.at(-1)?.retain).toBe(true);
    expect(kit.uplink.problems().join('\n')).not.toContain('retained');
  }, 80_000);

  it('is not one that ends the first connections for another reason', async () => {
    const { broker, kit } = await kitAt(
      {
        onPublish(message, peer) {
          if (broker.peers.length <= 2) peer.hangUp();
          else peer.puback(message.packet_id);
        },
      },
      { ack: 'broker' },
    );
    kit.send('presence', 0, { online: true });
    await eventually('delivered', () => kit.outbox.ledger().delivered === 1, 20_000);
    expect(broker.peers).toHaveLength(3);
    expect(broker.published.at(-1)?.retain).toBe(true);
    expect(kit.uplink.problems()).toEqual([]);
  }, 80_000);
});
