/** What a technician types, against the daemon that runs. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  bufferReport,
  quarantinedMessage,
  statusReport,
  tailLine,
  taskView,
} from '../../../src/kit/local/api.ts';
import { startScriptedBroker } from '../../support/brokers/scripted-broker.ts';
import { channels, upTopic } from '../../../src/contract/topics.ts';
import { startMosquitto, type Broker } from '../../support/brokers/broker.ts';
import { startChild } from '../../support/child.ts';
import type { Cloud } from '../../support/kit/cloud.ts';
import { eventually } from '../../support/eventually.ts';
import { command_file, withKit, type Kit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';

/** PUBACK of MQTT 5: about the message itself, not about its topic. */
const packet_too_large = 0x95;

describe.skipIf(peerMissing('mosquitto'))('the command line beside a running daemon', () => {
  let broker: Broker;
  beforeAll(async () => {
    broker = await startMosquitto();
  });
  afterAll(async () => {
    await broker.stop();
  });

  async function withScene(play: (kit: Kit, cloud: Cloud) => Promise<void>): Promise<void> {
    await withKit({ rehearsed: true }, async (kit) => {
      await kit.configure({
        kit_name: 'Kit 7',
        broker: { url: broker.url },
        drivers: [kit.gateway, kit.links, kit.rehearse({ gps_hz: 5 })],
      });
      const cloud = await kit.listen(broker.url);
      await kit.start();
      await cloud.until('a position', ({ channel }) => channel.endsWith('/gps'));
      await cloud.until('links', ({ channel, data }) => channel === 'telemetry' && 'wans' in (data ?? {}));
      await play(kit, cloud);
    });
  }

  it('shows how the kit is, for people and for programs, and where every accepted message went', async () => {
    await withScene(async (kit) => {
      const { stdout: json } = await kit.run('status', '--json');
      const status = statusReport.parse(JSON.parse(json));
      expect(status).toMatchObject({ kit_id: kit.kit_id, kit_name: 'Kit 7', degraded: [] });
      expect(status.uplink).toMatchObject({
        state: 'connected',
        broker: broker.url,
        protocol: '5',
        last_error: null,
      });
      expect(status.drivers.map(({ name, state }) => [name, state])).toEqual([
        ['gateway', 'up'],
        ['links', 'up'],
        ['rehearsal', 'up'],
      ]);
      const { accepted, delivered, buffered, quarantined, dropped } = status.outbox;
      const lost = Object.values(dropped).reduce((sum, rows) => sum + rows, 0);
      expect(accepted).toBe(delivered + buffered + quarantined + lost);

      const { code, stdout } = await kit.run('status');
      expect(code).toBe(0);
      const lines = stdout.split('\n');
      expect(lines[0]).toMatch(new RegExp(`^Kit 7 \\(${kit.kit_id}\\): ok {2}kit-connector \\d`));
      expect(stdout).toMatch(/^uplink {3}connected since /m);
      expect(stdout).toMatch(
        /^buffer {3}accepted \d+ = delivered \d+ to the broker \+ buffered \d+ \+ dropped \d+/m,
      );
      expect(stdout).toMatch(/Drone falcon +drone +online +(?:\w+ \ds ago, )*gps \ds ago.* falcon$/m);
      expect(stdout).toMatch(/wan0 +ethernet +online/);
      expect(stdout).toMatch(/^tasks {4}0 pending, 0 running/m);
    });
  });

  it('follows what is published, a line each, until Ctrl-C', async () => {
    await withScene(async (kit, cloud) => {
      const words = [
        'tail',
        '--json',
        '--asset',
        'drone falcon',
        '--feed',
        'gps',
        '--config',
        kit.config_file,
      ];
      const tail = startChild([command_file, ...words]);
      await tail.printed(/\n.*\n/);
      const { code, stdout, stderr } = await tail.end('SIGINT');
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      const lines = stdout
        .trim()
        .split('\n')
        .map((line) => tailLine.parse(JSON.parse(line)));
      expect(lines.length).toBeGreaterThanOrEqual(2);
      for (const line of lines) {
        if (line.kind === 'skipped') throw new Error('nothing was too fast');
        const { channel, time, data } = line;
        expect(channel).toBe(`feed/${kit.drone()}/gps`);
        const same = await cloud.until('the same', (each) => each.channel === channel && each.time === time);
        expect(same.data).toEqual(data);
      }
    });
  });

  it('runs a command of an asset, prints its end, and lists the tasks', async () => {
    await withScene(async (kit, cloud) => {
      const good = await kit.run('task', 'Drone falcon', 'work', '{"ms":10}');
      expect(good).toMatchObject({ code: 0, stderr: '' });
      expect(good.stdout).toMatch(/work {2}completed {2}\{"worked_ms":10\}\n$/);
      const bad = await kit.run('task', 'falcon', 'arm', '--json');
      expect(bad.code).toBe(1);
      const task = taskView.parse(JSON.parse(bad.stdout));
      expect(task).toMatchObject({
        status: 'failed',
        result: { error: 'the drone refuses to arm: compass not calibrated' },
      });
      await cloud.until(
        'the cloud hears of it',
        ({ channel, data }) => channel === `task/${task.id}` && data?.['status'] === 'failed',
      );
      const unknown = await kit.run('task', 'falcn', 'arm');
      expect(unknown).toMatchObject({
        code: 1,
        stderr: 'there is no asset "falcn"; did you mean "falcon"? (kit-connector status lists them)\n',
      });
      const { stdout } = await kit.run('task');
      expect(stdout.trim().split('\n')).toHaveLength(2);
      expect(stdout).toMatch(/Drone falcon {2}arm +failed +the drone refuses to arm/);
    });
  });

  it('shows the buffer, and what the broker refuses until it is sent again or discarded', async () => {
    await withKit({ rehearsed: true }, async (kit) => {
      const telemetry = upTopic(kit.kit_id, channels.telemetry);
      const strict = await startScriptedBroker({
        onPublish: ({ topic, packet_id }, peer) =>
          peer.puback(packet_id, topic === telemetry ? packet_too_large : 0),
      });
      try {
        await kit.configure({ broker: { url: strict.url }, drivers: [kit.gateway] });
        await kit.start();
        await eventually('something is refused', async () => (await kit.status()).outbox.quarantined > 0);
        const status = await kit.run('status');
        expect(status.stdout).toContain(': degraded ');
        expect(status.stdout).toMatch(
          / {2}! \d+ messages? (?:is|are) refused by the broker; see kit-connector buffer quarantine list/,
        );
        const shown = bufferReport.parse(JSON.parse((await kit.run('buffer', '--json')).stdout));
        expect(shown.quarantined).toBeGreaterThan(0);
        expect((await kit.run('buffer')).stdout).toMatch(/^lane +messages +size +in memory +oldest\n/);
        const list = async () =>
          z
            .array(quarantinedMessage)
            .parse(JSON.parse((await kit.run('buffer', 'quarantine', 'list', '--json')).stdout));
        const [refused] = await list();
        expect(refused).toMatchObject({ channel: 'telemetry', code: packet_too_large });
        expect((await kit.run('buffer', 'quarantine')).stdout).toMatch(
          / {2}telemetry +\d+ B +149 .*too large/i,
        );

        const { stdout: gone } = await kit.run('buffer', 'quarantine', 'discard', String(refused?.id));
        expect(gone).toBe('1 discarded\n');
        expect((await list()).map(({ id }) => id)).not.toContain(refused?.id);
        strict.follow({});
        await eventually('all of it is accepted', async () => {
          await kit.run('buffer', 'quarantine', 'retry');
          return (await kit.status()).outbox.quarantined === 0;
        });
        expect((await kit.run('buffer', 'quarantine')).stdout).toBe('the quarantine is empty\n');
        expect((await kit.status()).outbox).toMatchObject({ balanced: true, dropped: { discarded: 1 } });
      } finally {
        await strict.close();
      }
    });
  });
});
