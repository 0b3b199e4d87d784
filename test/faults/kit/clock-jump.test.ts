/** Gateways without a battery for their clock boot in the past, and time servers correct them by years at once. */
import { describe, expect, it } from 'vitest';
import { vouched, systemClock, type Clock } from '../../../src/platform/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { peerMissing } from '../../support/peers.ts';
import { connected, everythingArrives, withLab } from '../support/lab.ts';

const year_ms = 365 * 86_400_000;
const month_ms = 30 * 86_400_000;

function jumpingClock(): Clock & { jump: (ms: number) => void } {
  const real = systemClock({ evidence: vouched });
  let offset_ms = 0;
  return {
    boot_id: real.boot_id,
    stamp: () => {
      const stamp = real.stamp();
      return { ...stamp, time_ms: stamp.time_ms + offset_ms, synced: true };
    },
    jump(ms) {
      offset_ms += ms;
    },
  };
}

describe.skipIf(peerMissing('mosquitto'))('a clock that jumps by a year', () => {
  it('forwards and back while messages flow changes nothing about their delivery', async () => {
    await withLab({}, async (lab) => {
      const clock = jumpingClock();
      const subscriber = await lab.subscribe();
      const connector = await lab.start({ clock, limits: { age_max_ms: month_ms } });
      await connected(connector);
      const stop = lab.produce(connector, ['feed', 'alarm'], 200);
      for (const jump_ms of [year_ms, -2 * year_ms, year_ms]) {
        const before = connector.acknowledged;
        clock.jump(jump_ms);
        await eventually('messages still flow', () => connector.acknowledged > before + 50);
      }
      stop();
      await everythingArrives(connector, subscriber);
      expect(connector.outbox.ledger().dropped).toEqual({});
      expect(lab.connections()).toBe(1);
    });
  });

  it('while the broker is away does not make the buffer look a year old', async () => {
    await withLab({}, async (lab) => {
      const clock = jumpingClock();
      lab.proxy.setAdmission('refuse');
      const connector = await lab.start({ clock, limits: { age_max_ms: month_ms } });
      for (let n = 0; n < 1_000; n++) connector.send(n % 2 ? 'alarm' : 'feed', n, { n });
      await connector.outbox.flush();
      clock.jump(year_ms);
      for (let n = 0; n < 1_000; n++) connector.send(n % 2 ? 'alarm' : 'feed', n, { n });
      await connector.outbox.flush();
      const subscriber = await lab.subscribe();
      lab.proxy.setAdmission('pass');
      await everythingArrives(connector, subscriber);
      expect(connector.outbox.ledger()).toMatchObject({ accepted: 2_000, delivered: 2_000, dropped: {} });
    });
  });
});
