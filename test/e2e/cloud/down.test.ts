/** What the cloud sends down beside tasks: announce again, other rates, what it has stored, and things that nobody understands. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startMosquitto, type Broker } from '../../support/brokers/broker.ts';
import type { Child } from '../../support/child.ts';
import type { Cloud } from '../../support/kit/cloud.ts';
import { eventually } from '../../support/eventually.ts';
import { withKit, type Kit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';

describe.skipIf(peerMissing('mosquitto'))('a kit that receives messages of its cloud', () => {
  let broker: Broker;
  beforeAll(async () => {
    broker = await startMosquitto();
  });
  afterAll(async () => {
    await broker.stop();
  });

  async function withScene(
    settings: { readonly broker?: object },
    play: (kit: Kit, cloud: Cloud, daemon: Child) => Promise<void>,
  ): Promise<void> {
    await withKit({ rehearsed: true }, async (kit) => {
      await kit.configure({
        broker: { url: broker.url, ...settings.broker },
        feeds: { rates_hz: { gps: 20 } },
        drivers: [kit.gateway, kit.links, kit.rehearse({ gps_hz: 20 })],
      });
      const cloud = await kit.listen(broker.url);
      const daemon = await kit.start();
      await cloud.until('a position', ({ channel }) => channel.endsWith('/gps'));
      await cloud.until('telemetry', ({ channel }) => channel === 'telemetry');
      await play(kit, cloud, daemon);
    });
  }

  it('announces assets, commands and the whole telemetry again when it is asked to', async () => {
    await withScene({}, async (kit, cloud) => {
      const asset = `asset/${kit.drone()}`;
      const before = cloud.heard.length;
      const isNew = (channel: string) => (message: { channel: string }) =>
        message.channel === channel && cloud.heard.findLastIndex((each) => each === message) >= before;
      await cloud.send({ kind: 'sync' }, '');
      await cloud.until('the asset', isNew(asset));
      await cloud.until('its commands', isNew(`${asset}/commands`));
      const telemetry = await cloud.until(
        'telemetry',
        (each) => isNew('telemetry')(each) && 'wans' in (each.data ?? {}),
      );
      expect(telemetry.data).toHaveProperty('gateway');
    });
  });

  it('announces everything again in the epoch that it begins after an acknowledgement of numbers it has not used', async () => {
    await withScene({}, async (kit, cloud) => {
      const foreign = Math.max(...cloud.heard.map(({ epoch }) => epoch)) + 3;
      await cloud.send({ kind: 'ack' }, { epoch: foreign, ranges: [[1, 10]] }, { retain: true });
      const again = await cloud.until(
        'the asset in another epoch',
        ({ channel, epoch }) => channel === `asset/${kit.drone()}` && epoch >= foreign,
      );
      expect(again.epoch).toBeGreaterThan(foreign);
      await cloud.send({ kind: 'ack' }, '', { retain: true });
    });
  });

  it('publishes at most as fast as the cloud requests, and never faster than its own configuration allows', async () => {
    await withScene({}, async (kit, cloud) => {
      const channel = `feed/${kit.drone()}/gps`;
      /** Between the last positions, by the time of the kit: a busy machine delivers some late and together. */
      const gaps_ms = (first: number): readonly number[] => {
        const times = cloud.on(channel).map(({ time }) => Date.parse(time));
        return times
          .slice(1)
          .map((time, at) => time - (times[at] ?? 0))
          .slice(first);
      };
      const lately = (fits: (gap_ms: number) => boolean): boolean =>
        gaps_ms(0).length > 2 && gaps_ms(-2).every(fits);
      const isSlow = (): boolean => lately((gap_ms) => gap_ms > 500);
      const isFast = (): boolean => lately((gap_ms) => gap_ms < 200);
      await eventually('as fast as it is configured', isFast);
      await cloud.send({ kind: 'config' }, { rates_hz: { gps: 1 } }, { retain: true });
      await eventually('slower', isSlow);
      await cloud.send({ kind: 'config' }, { rates_hz: { gps: 50 } });
      await eventually('as fast as before', isFast);
      const before = gaps_ms(0).length;
      await eventually('a second of them', () => gaps_ms(before).length > 22);
      const all_ms = gaps_ms(before).reduce((sum, gap_ms) => sum + gap_ms, 0);
      expect(gaps_ms(before).length / all_ms).toBeLessThan(22 / 1_000);
      await cloud.send({ kind: 'config' }, '', { retain: true });
    });
  });

  it('keeps task reports until the cloud has stored them, and sends them again until then', async () => {
    await withScene({ broker: { ack: 'cloud' } }, async (kit, cloud, daemon) => {
      const task_id = randomUUID();
      const created_at = new Date().toISOString();
      const order = { task_id, asset_id: kit.drone(), command_name: 'work', payload: { ms: 0 }, created_at };
      await cloud.send({ kind: 'task', task_id }, order);
      const isEnd = ({ channel, data }: Cloud['heard'][number]): boolean =>
        channel === `task/${task_id}` && data?.['status'] === 'completed';
      const end = await cloud.until('the end', isEnd);
      const waiting = async (): Promise<number> => {
        const { by_lane } = (await kit.status()).outbox;
        return (by_lane['task']?.rows ?? 0) + (by_lane['alarm']?.rows ?? 0);
      };
      // A second after the PUBACK a message counts as delivered, were it not for the rule.
      const later_ms = Date.parse(end.time) + 1_500;
      await cloud.until('later messages', ({ time }) => Date.parse(time) > later_ms);
      expect(await waiting()).toBeGreaterThan(0);
      await daemon.end('SIGTERM');
      await kit.start();
      await cloud.until('the same report once more', () => cloud.heard.filter(isEnd).length > 1);
      const [first, again] = cloud.heard.filter(isEnd);
      expect({ ...again, retain: false }).toEqual({ ...first, retain: false });
      expect(again?.seq).toBe(end.seq);

      await eventually('acknowledged and gone', async () => {
        for (const epoch of new Set(cloud.heard.map((each) => each.epoch))) {
          const seqs = cloud.heard
            .filter((each) => each.epoch === epoch && each.channel !== 'state')
            .map(({ seq }) => seq);
          if (seqs.length > 0)
            await cloud.send({ kind: 'ack' }, { epoch, ranges: [[Math.min(...seqs), Math.max(...seqs)]] });
        }
        return (await waiting()) === 0;
      });
      expect((await kit.status()).outbox).toMatchObject({ balanced: true, quarantined: 0 });
    });
  });

  it('survives garbage on every topic and logs which key of which message is invalid', async () => {
    await withScene({}, async (kit, cloud, daemon) => {
      const garbage = [
        'no JSON',
        '[]',
        '{"epoch":"x","ranges":3}',
        '{"rates_hz":{"gps":-1}}',
        '\u0000',
        '{'.repeat(10_000),
      ];
      for (const body of garbage) {
        for (const kind of ['ack', 'config', 'sync'] as const) await cloud.send({ kind }, body);
        for (const kind of ['task', 'cancel'] as const) await cloud.send({ kind, task_id: 'nobody' }, body);
      }
      await cloud.send({ kind: 'cancel', task_id: randomUUID() }, 'what?');
      const said = (): string[] =>
        daemon.log().map(({ msg, topic, reason }) => [topic, reason, msg].filter(Boolean).join(' '));
      const prefix = `k1/${kit.kit_id}/down`;
      await eventually('every fault is said', () =>
        [
          `${prefix}/ack epoch: expected number, received string "x" (and 1 more) cloud message did not match the contract; ignored`,
          `${prefix}/config rates_hz.gps: Too small: expected number to be >=0.001, received -1 cloud message did not match the contract; ignored`,
        ].every((line) => said().includes(line)),
      );
      const alive = cloud.on('feed/').length;
      await cloud.until('the kit goes on', () => cloud.on('feed/').length > alive + 3);
      expect((await kit.status()).uplink).toMatchObject({ state: 'connected', attempts: 1 });
      expect(daemon.log().filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
    });
  });
});
