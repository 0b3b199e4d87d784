/** The daemon starts again: what outlives it, what does not, and what it takes over from one that was killed. */
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { texts } from '../../../src/kit/local/texts.ts';
import { startMosquitto, type Broker } from '../../support/brokers/broker.ts';
import { startCloud } from '../../support/kit/cloud.ts';
import { eventually } from '../../support/eventually.ts';
import { withKit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { texts as hub_texts } from '../../../src/kit/hub/texts.ts';

describe.skipIf(peerMissing('mosquitto'))('a daemon that is started again', () => {
  let broker: Broker;
  beforeAll(async () => {
    broker = await startMosquitto();
  });
  afterAll(async () => {
    await broker.stop();
  });

  it('has a higher epoch, keeps its assets and clears those of a driver that is not configured any more', async () => {
    await withKit({ rehearsed: true }, async (kit) => {
      const base = { broker: { url: broker.url } };
      await kit.configure({ ...base, drivers: [kit.gateway, kit.rehearse()] });
      const cloud = await kit.listen(broker.url);
      const drone = `asset/${kit.drone()}`;
      const first = await kit.start();
      await cloud.until(
        'the drone',
        ({ channel, data }) => channel === drone && data?.['status'] === 'online',
      );
      await cloud.until('its commands', ({ channel }) => channel === `${drone}/commands`);
      await first.end('SIGTERM');
      await cloud.until('the farewell', ({ data }) => data?.['online'] === false);
      const gone = await cloud.until(
        'offline',
        ({ channel, data }) => channel === drone && data?.['status'] === 'offline',
      );
      expect(gone.data).toMatchObject({ status_reason: hub_texts.driver_stopped });

      const second = await kit.start();
      const back = await cloud.until(
        'the drone again',
        ({ channel, data, epoch }) =>
          channel === drone && data?.['status'] === 'online' && epoch > gone.epoch,
      );
      const birth = cloud.on('state').at(-1);
      expect(birth).toMatchObject({ epoch: back.epoch, data: { online: true } });
      await second.end('SIGTERM');

      await kit.configure({ ...base, drivers: [kit.gateway] });
      await kit.start();
      for (const channel of [drone, `${drone}/commands`]) {
        await cloud.until(
          `${channel} cleared`,
          (each) => each.channel === channel && each.data === null && each.retain,
        );
        // First the removal with its stamp, for those who listen; then the empty payload, for the broker.
        const [removal, clearing] = cloud.on(channel).slice(-2);
        expect([removal?.data, removal?.retain, clearing?.data, clearing?.time]).toEqual([
          null,
          false,
          null,
          '',
        ]);
        expect(removal?.epoch).toBeGreaterThan(back.epoch);
      }
      const late = await startCloud(broker.url, kit.kit_id);
      await late.until('what is retained', ({ data }) => data?.['type'] === 'gateway');
      await late.until('all of it', ({ channel }) => channel === 'roster');
      expect(late.on(drone)).toEqual([]);
      expect(late.on('asset/').filter(({ data }) => data?.['type'] === 'gateway')).toHaveLength(1);
      await late.leave();
    });
  });

  it('replaces the control socket of a killed daemon', async () => {
    await withKit({ rehearsed: false }, async (kit) => {
      await kit.configure({ broker: { url: broker.url } });
      const killed = await kit.start();
      await killed.end('SIGKILL');
      expect(existsSync(kit.socket)).toBe(true);
      const { code, stderr } = await kit.run('status');
      expect({ code, stderr }).toEqual({
        code: 69,
        stderr: `${texts.not_running(kit.socket, 'connection refused')}\n`,
      });
      const next = await kit.start();
      expect((await kit.status()).kit_id).toBe(kit.kit_id);
      await next.end('SIGTERM');
      expect(existsSync(kit.socket)).toBe(false);
    });
  });

  it('keeps what was in the buffer when it was killed', async () => {
    await withKit({ rehearsed: true }, async (kit) => {
      // Nobody listens on this port.
      await kit.configure({
        broker: { url: 'mqtt://127.0.0.1:1' },
        feeds: { rates_hz: { gps: 20 } },
        drivers: [kit.rehearse({ gps_hz: 20 })],
      });
      const killed = await kit.start();
      const feedRows = async (): Promise<number> => (await kit.status()).outbox.by_lane['feed']?.rows ?? 0;
      let kept = 0;
      await eventually('some are in the buffer', async () => (kept = await feedRows()) > 8);
      await killed.end('SIGKILL');
      await kit.configure({ broker: { url: broker.url } });
      const cloud = await kit.listen(broker.url);
      await kit.start();
      const positions = `feed/${kit.drone()}/gps`;
      await cloud.until('all of them', () => cloud.on(positions).length >= kept);
      const [birth] = cloud.on('state');
      for (const { epoch, historical } of cloud.on(positions)) {
        expect(epoch).toBeLessThan(birth?.epoch ?? 0);
        expect(historical).toBe(true);
      }
    });
  });
});
