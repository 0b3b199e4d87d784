/** How soon the uplink tries again. A kit on a link that flaps stayed away for up to a minute after each outage of seconds. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../src/kit/uplink/texts.ts';
import { kitAt } from '../../../support/brokers/kit-scene.ts';
import type { Script } from '../../../support/brokers/scripted-broker.ts';
import { eventually } from '../../../support/eventually.ts';
import { systemClock, vouched } from '../../../../src/platform/clock.ts';

describe('pauses between attempts', () => {
  it('begin again at the shortest after a connection that carried a message', async () => {
    const retry_ms = 400;
    const { broker, kit } = await kitAt({}, { retry_ms, random: () => 1 });
    const waits: number[] = [];
    for (let n = 1; n <= 4; n += 1) {
      await eventually('connected', () => kit.uplink.online);
      const before = kit.acknowledged;
      kit.send('alarm', n, { n });
      await eventually('carried', () => kit.acknowledged > before);
      broker.peers.at(-1)?.hangUp();
      await eventually('waiting', () => {
        const { next_try_in_ms } = kit.uplink.status();
        if (next_try_in_ms !== null) waits.push(next_try_in_ms);
        return next_try_in_ms !== null;
      });
    }
    expect(waits.every((wait_ms) => wait_ms <= retry_ms)).toBe(true);
  });

  it('end when the clock is set, by which the certificate of the broker may be valid now', async () => {
    let wall_ms = 0;
    const clock = systemClock({ evidence: vouched, wall: () => wall_ms });
    const busy: Script = { onConnect: (peer) => peer.connack(0x88) };
    const { broker, kit } = await kitAt(busy, { clock, retry_ms: 3_600_000, random: () => 1 });
    await eventually('waiting', () => kit.uplink.status().next_try_in_ms !== null);
    broker.follow({});
    wall_ms = Date.UTC(2026, 10, 30);
    await eventually('connected', () => {
      clock.stamp();
      return kit.uplink.online;
    });
  });

  // hivemq/hivemq-community-edition#256, rabbitmq.com/docs/alarms, and every TCP proxy before a broker that restarts
  it('name no wrong port and no missing TLS where the broker has served the kit', async () => {
    const { broker, kit } = await kitAt({}, { retry_ms: 300, random: () => 1 });
    await eventually('connected', () => kit.uplink.online);
    broker.follow({ onConnect: (peer) => peer.hangUp() });
    broker.peers.at(-1)?.hangUp();
    await eventually('named', () => kit.uplink.status().last_error === texts.serves_no_more);
    expect(new Set(broker.peers.map(({ version }) => version))).toEqual(new Set([5]));
  });
});
