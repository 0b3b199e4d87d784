/** Identities of vehicles on the network: clones, replacements, parts and several links. */
import { describe, expect, it } from 'vitest';
import { texts as refusals } from '../../../../../drivers/mavlink/commands/texts.ts';
import { texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import { blank, encode } from '../../../../../drivers/mavlink/wire/messages.ts';
import { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { every } from '../../../../../src/platform/time.ts';
import { eventually } from '../../../../support/eventually.ts';
import { drone_key, withLab } from '../mavlink-lab.ts';
import { freePort } from '../../../../support/ports.ts';

const no_uid = '0000000000000000';

describe.concurrent('A vehicle', () => {
  it('is a separate asset while another vehicle has the same system id, and gets only what makes it safer', async () => {
    await withLab(async (lab) => {
      await lab.fly({ airborne: true });
      await lab.until('online');
      const other = await lab.fly({ airborne: true, uid: '00000000c0ffee02' });
      await lab.sees('sys_status', ({ alarms }) => Array.isArray(alarms));
      expect(lab.hub.assets().map(({ key }) => key)).toEqual([drone_key, 'mavlink:00000000c0ffee02']);
      const loiter = async () => lab.command('set_mode', { mode: 'LOITER' });
      await expect(loiter()).rejects.toThrow(refusals.not_sent(texts.id_shared(1)));
      expect(await lab.command('return_home')).toMatchObject({ flight_mode: 'RTL' });
      expect(lab.log.at('error')).toEqual([texts.conflict]);
      other.silent = true;
      await lab.until('offline', 'mavlink:00000000c0ffee02');
      expect(await loiter()).toMatchObject({ flight_mode: 'LOITER' });
    });
  });

  it.each([
    { name: 'with two hardware ids', uids: ['00000000c0ffee01', '00000000c0ffee02'], key: drone_key },
    { name: 'without hardware ids, with two clocks', uids: [no_uid, no_uid], key: 'mavlink:system-1' },
  ])(
    'goes on while two send with one system id from one address, and both get what makes them safer: $name',
    async ({ uids, key }) => {
      await withLab(async (lab) => {
        const [uid, other_uid] = uids as [string, string];
        const drone = await lab.fly({ airborne: true, autopilot: 'px4', uid });
        await lab.until('online', key);
        const other = new FakeDrone({ port: lab.port, uid: other_uid, uptime_ms: 100_000, autopilot: 'px4' });
        other.shareAddressOf(drone);
        await other.start();
        await lab.sees(
          'sys_status',
          ({ alarms }) => JSON.stringify(alarms ?? '').includes(texts.id_shared(1)),
          key,
        );
        lab.outbox.clear();
        for (const feed of ['gps', 'attitude', 'battery']) await lab.sees(feed, () => true, key);
        await lab.sees('sys_status', ({ armed, flight_mode }) => armed === true && flight_mode !== null, key);
        const refused = refusals.not_sent(texts.id_shared(1));
        await expect(lab.command('set_mode', { mode: 'GUIDED' }, { key })).rejects.toThrow(refused);
        // One of the two flies.
        await expect(lab.command('disarm', {}, { key })).rejects.toThrow(refusals.airborne);
        expect([drone.commands, other.commands]).toEqual([[], []]);
        // The one on the ground is disarmed: that keeps the other one from nothing.
        await expect(lab.command('return_home', {}, { key })).rejects.toThrow(refusals.unknown_outcome(''));
        expect([drone.flight.mode, other.flight.mode]).toEqual(['RTL', 'RTL']);
        await eventually('it is logged', () => lab.log.at('error').length > 0);
        expect(lab.log.at('error')).toEqual([texts.conflict]);
        other.stop();
      });
    },
  );

  it('is recognised as two when the second one comes later and sends only heartbeats', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ airborne: true });
      await lab.sees('gps');
      const other = new FakeDrone({ port: lab.port, uid: '00000000c0ffee02' });
      other.shareAddressOf(drone);
      await other.start();
      await lab.outbox.until(({ data }) => Array.isArray(data?.['alarms']));
      await expect(lab.command('arm')).rejects.toThrow(refusals.not_sent(texts.id_shared(1)));
      expect(drone.commands).toEqual([]);
      other.stop();
    });
  });

  it('shows flight mode names from its own list', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly();
      drone.modes = [
        { custom_mode: 5, mode_name: 'LOIT' },
        { custom_mode: 99, mode_name: 'Mower' },
      ];
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'LOITER');
      expect(drone.requests).not.toContain(435);
      drone.odd_mode = 99;
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'UNKNOWN(99)');
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'Mower');
    });
  });

  it('goes offline when another one replaces it with the same radio and system id', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ uptime_ms: 100_000 });
      await lab.until('online');
      await lab.sees('attitude');
      drone.uid = '00000000c0ffee02';
      await drone.reboot({ keep_port: true });
      await lab.until('online', 'mavlink:00000000c0ffee02');
      await lab.until('offline');
      expect(lab.log.at('error')).toEqual([]);
      await expect(lab.command('arm')).rejects.toThrow(refusals.not_sent(texts.offline('Quadrotor 1')));
      await lab.sees('sys_status', ({ pre_arm_check }) => pre_arm_check !== null, 'mavlink:00000000c0ffee02');
    });
  });

  it('is distinguished from others by its system id', async () => {
    await withLab(async (lab) => {
      await lab.fly({ airborne: true });
      await lab.fly({ airborne: true, sysid: 2, uid: '00000000c0ffee02', autopilot: 'px4' });
      await lab.until('online');
      await lab.until('online', 'mavlink:00000000c0ffee02');
      expect(await lab.command('set_mode', { mode: 'LOITER' })).toMatchObject({ flight_mode: 'LOITER' });
      expect(await lab.sees('sys_status', () => true, 'mavlink:00000000c0ffee02')).toMatchObject({
        flight_mode: 'MISSION',
      });
    });
  });

  it('is identified by its system id when it has no hardware id', async () => {
    await withLab(async (lab) => {
      await lab.fly({ uid: '0000000000000000' });
      await lab.until('online', 'mavlink:system-1');
      expect(lab.hub.assets()).toHaveLength(1);
    });
  });

  it('has its camera as a child with vendor and model from the camera', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly();
      drone.camera = { vendor: 'Skyview', model: 'Z10' };
      await lab.until('online');
      drone.beatCamera();
      const child = await lab.outbox.until(
        ({ channel, data }) => /up\/asset|^asset\//u.test(channel) && data?.['model'] === 'Z10',
      );
      expect(child.data).toMatchObject({
        asset_key: `${drone_key}:component-100`,
        type: 'camera',
        vendor: 'Skyview',
        parent_id: expect.any(String) as string,
      });
    });
  });

  it('has no asset for our own heartbeat when a router returns it', async () => {
    await withLab({ system_id: 1 }, async (lab) => {
      const drone = await lab.fly();
      await lab.until('online');
      const beat = { ...blank('HEARTBEAT'), type: 18, autopilot: 8, system_status: 4, mavlink_version: 3 };
      drone.sendRaw(encode('HEARTBEAT', beat, { sysid: 1, compid: 191, seq: 0 }));
      drone.beatCamera();
      await lab.until('online', `${drone_key}:component-100`);
      expect(lab.hub.assets().map(({ key }) => key)).toEqual([drone_key, `${drone_key}:component-100`]);
    });
  });

  it('is one asset over two links, and is commanded over the remaining one', async () => {
    const second = await freePort();
    const first = await freePort();
    const links = [first, second].map((port) => ({ kind: 'udp_listen', host: '127.0.0.1', port }));
    await withLab({ links }, async (lab) => {
      const drone = await lab.fly({ port: first, airborne: true });
      await lab.until('online');
      drone.alsoTo(second);
      await eventually(
        'requests sent over both links',
        () => drone.requests.filter((id) => id === 148).length >= 2,
      );
      expect(lab.hub.assets()).toHaveLength(1);
      expect(lab.log.at('error')).toEqual([]);
      drone.onlyTo(second);
      // What is received from now on can come over the second link only.
      drone.odd_mode = 16;
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'POSHOLD');
      drone.odd_mode = undefined;
      expect(await lab.command('set_mode', { mode: 'LOITER' })).toMatchObject({ flight_mode: 'LOITER' });
    });
  });

  it('keeps its camera when it restarts and sends from another port', async () => {
    await withLab({ offline_after_s: 2 }, async (lab) => {
      const drone = await lab.fly();
      await lab.until('online');
      drone.beatCamera();
      await lab.until('online', `${drone_key}:component-100`);
      await drone.reboot();
      const beating = new AbortController();
      every(200, beating.signal, () => drone.beatCamera());
      lab.outbox.clear();
      await lab.sees('attitude');
      beating.abort();
      const edges = lab.outbox.drafts.filter(({ channel }) => channel.endsWith('asset_status'));
      expect(edges).toEqual([]);
      await lab.until('offline', `${drone_key}:component-100`);
    });
  });
});
