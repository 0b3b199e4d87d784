/** The daemon as the cloud meets it: what it says first, how it takes leave, and what is heard when it cannot. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { announcement } from '../../../src/contract/assets.ts';
import { startMosquitto, type Broker } from '../../support/brokers/broker.ts';
import type { Heard } from '../../support/kit/cloud.ts';
import { withKit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';

describe.skipIf(peerMissing('mosquitto'))('a kit and its cloud', () => {
  let broker: Broker;
  beforeAll(async () => {
    broker = await startMosquitto();
  });
  afterAll(async () => {
    await broker.stop();
  });

  it('receives the birth before everything else, and the assets with their commands and telemetry after it', async () => {
    await withKit({ rehearsed: false }, async (kit) => {
      const drivers = [kit.gateway, kit.links];
      await kit.configure({ kit_name: 'Kit 7', broker: { url: broker.url }, drivers });
      const cloud = await kit.listen(broker.url);
      await kit.start();
      // Each driver reports when it is ready, so the parts may come in one message or in two.
      const telemetryWith = async (part: string) => cloud.until(part, isTelemetryWith(part));
      const { retain, data } = await telemetryWith('gateway');
      expect(retain).toBe(false);
      expect(data?.['gateway']).toMatchObject({ name: 'gw', model: 'test', uptime_s: 86_400 });
      const { data: with_wans } = await telemetryWith('wans');
      expect(with_wans?.['wans']).toMatchObject([{ name: 'wan0', type: 'ethernet', status: 'online' }]);

      const birth = cloud.heard[0]!;
      expect(birth).toMatchObject({
        channel: 'state',
        retain: true,
        seq: 1,
        data: {
          online: true,
          reason: null,
          name: 'Kit 7',
          contract: '1.2',
          degraded: [],
        },
      });
      expect(birth.data?.['software']).toMatch(/^kit-connector \d+\.\d+\.\d+/);
      expect(birth.data?.['epoch']).toBe(birth.epoch);
      // Telemetry is sent at once; the asset once it is on disk.
      const asset = await cloud.until('the gateway', ({ data }) => data?.['type'] === 'gateway');
      expect(asset).toMatchObject({ retain: true, epoch: birth.epoch });
      expect(asset.data).toMatchObject({ status: 'online', driver: 'gateway', name: 'gw' });
      const { id } = announcement.parse(asset.data);
      expect(asset.channel).toBe(`asset/${id}`);
      const commands = await cloud.until(
        'its commands',
        ({ channel }) => channel === `${asset.channel}/commands`,
      );
      expect(commands).toMatchObject({ retain: true, data: { commands: [] } });
    });
  });

  it('gets everything that was accepted and a farewell at SIGTERM, within seconds', async () => {
    await withKit({ rehearsed: true }, async (kit) => {
      await kit.configure({ broker: { url: broker.url }, drivers: [kit.rehearse({ gps_hz: 20 })] });
      const cloud = await kit.listen(broker.url);
      const positions = `feed/${kit.drone()}/gps`;
      const daemon = await kit.start();
      await cloud.until('some positions', () => cloud.on(positions).length >= 3);
      const { code, stderr } = await daemon.end('SIGTERM');
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      const farewell = await cloud.until('the farewell', ({ data }) => data?.['online'] === false);
      expect(farewell).toMatchObject({ channel: 'state', retain: true, seq: 10_000_000 });
      expect(farewell.data).toMatchObject({ reason: 'stopped' });
      expect(cloud.heard.at(-1)).toBe(farewell);

      // What is announced at the start may be superseded before it is sent; from the second position on there is no hole.
      const [, second] = cloud.on(positions);
      const numbers = new Set(cloud.heard.filter(({ channel }) => channel !== 'state').map(({ seq }) => seq));
      const later = [...numbers].filter((seq) => seq >= (second?.seq ?? 0)).toSorted((a, b) => a - b);
      expect(later).toEqual(later.map((_, at) => (second?.seq ?? 0) + at));
    });
  });

  it('receives the will from the broker when the daemon is killed', async () => {
    await withKit({ rehearsed: false }, async (kit) => {
      // The will of MQTT 3.1.1 has no delay.
      await kit.configure({ broker: { url: broker.url, protocol: '3.1.1' }, drivers: [kit.gateway] });
      const cloud = await kit.listen(broker.url);
      const daemon = await kit.start();
      await cloud.until('the birth', ({ data }) => data?.['online'] === true);
      await daemon.end('SIGKILL');
      const will = await cloud.until('the will', ({ data }) => data?.['online'] === false);
      expect(will).toMatchObject({ channel: 'state', retain: true, seq: 10_000_000 });
      expect(will.data).toMatchObject({ reason: 'connection lost' });
    });
  });

  it('does not see a kit go offline that is killed and is back at once', async () => {
    await withKit({ rehearsed: false }, async (kit) => {
      await kit.configure({ broker: { url: broker.url }, drivers: [kit.gateway] });
      const cloud = await kit.listen(broker.url);
      const killed = await kit.start();
      const before = await cloud.until('the birth', ({ channel }) => channel === 'state');
      await killed.end('SIGKILL');
      const daemon = await kit.start();
      await cloud.until(
        'the second birth',
        ({ epoch, data }) => epoch > before.epoch && data?.['online'] === true,
      );
      await daemon.end('SIGTERM');
      await cloud.until('the farewell', ({ data }) => data?.['online'] === false);
      expect(cloud.on('state').map(({ data }) => [data?.['online'], data?.['reason']])).toEqual([
        [true, null],
        [true, null],
        [false, 'stopped'],
      ]);
    });
  });
});

const isTelemetryWith =
  (part: string) =>
  ({ channel, data }: Heard): boolean =>
    channel === 'telemetry' && part in (data ?? {});
