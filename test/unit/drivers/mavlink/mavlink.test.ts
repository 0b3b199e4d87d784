/** The driver as a whole, against simulated ArduPilot and PX4 vehicles on real sockets. */
import { describe, expect, it } from 'vitest';
import { mavlink } from '../../../../drivers/mavlink/mavlink.ts';
import { mavlinkOptions } from '../../../../drivers/mavlink/options.ts';
import { texts } from '../../../../drivers/mavlink/vehicles/texts.ts';
import { FakeDrone } from '../../../fakes/fake-drone.ts';
import { driverConformance } from '../../../support/drivers/driver-conformance.ts';
import { eventually } from '../../../support/eventually.ts';
import { drone_key, withLab } from './mavlink-lab.ts';
import { freePort } from '../../../support/ports.ts';

describe('The mavlink driver', () => {
  let port = 0;
  let drone: FakeDrone | undefined;
  driverConformance({
    driver: mavlink,
    options: () => ({ links: [{ kind: 'udp_listen', host: '127.0.0.1', port: port === 0 ? 14_550 : port }] }),
    peer: {
      async start() {
        drone?.stop();
        port = await freePort();
        drone = new FakeDrone({ port, airborne: true });
        await drone.start();
      },
      lose: async () => void (drone && (drone.silent = true)),
      restore: async () => void (drone && (drone.silent = false)),
      stop: async () => drone?.stop(),
    },
  });
});

describe.concurrent('A vehicle on the network', () => {
  it.each(['ardupilot', 'px4'] as const)('fills every feed: %s', async (autopilot) => {
    await withLab(async (lab) => {
      await lab.fly({ autopilot, airborne: true });
      expect(
        await lab.sees('gps', ({ alt_m, relative_alt_m }) => alt_m !== null && relative_alt_m !== null),
      ).toMatchObject({
        lat: expect.closeTo(47.3977, 2) as number,
        lon: expect.closeTo(8.5456, 2) as number,
        alt_amsl_m: 528,
        alt_m: 575.3,
        relative_alt_m: 40,
      });
      expect(await lab.sees('gps_raw')).toMatchObject({ fix_type: 3, satellites_visible: 14, hdop: 0.8 });
      expect(await lab.sees('battery')).toMatchObject({ voltage: 15.8, current: 12.5, remaining_pct: 76 });
      expect(await lab.sees('attitude')).toMatchObject({ roll: 1.15, pitch: -2.86 });
      expect(await lab.sees('vfr_hud')).toMatchObject({
        throttle_pct: 42,
        ...(autopilot === 'px4' ? { airspeed: null } : {}),
      });
      const flight_mode = autopilot === 'px4' ? 'MISSION' : 'AUTO';
      expect(
        await lab.sees(
          'sys_status',
          ({ ekf_ok, pre_arm_check }) => ekf_ok === true && pre_arm_check !== null,
        ),
      ).toMatchObject({
        armed: true,
        flight_mode,
        ekf_ok: true,
        pre_arm_check: true,
        system_status: 'ACTIVE',
      });
      expect(lab.hub.assets()).toMatchObject([
        { key: drone_key, type: 'drone', name: 'Quadrotor 1', status: 'online' },
      ]);
    });
  });

  it('has no position and no goto_waypoint while the autopilot repeats an old position', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ airborne: true });
      await lab.sees('gps', ({ relative_alt_m }) => relative_alt_m !== null);
      drone.gps = 'lost';
      await lab.sees('sys_status', ({ ekf_ok }) => ekf_ok === false);
      expect(await lab.sees('gps_raw', ({ fix_type }) => fix_type === 1)).toMatchObject({
        lat: null,
        lon: null,
        alt_m: null,
      });
      lab.outbox.clear();
      await lab.sees('attitude');
      await lab.sees('vfr_hud');
      await lab.sees('sys_status');
      expect(lab.outbox.on(lab.feed('gps'))).toEqual([]);
      await expect(lab.command('goto_waypoint', { lat: 47.398, lon: 8.5456, alt_m: 30 })).rejects.toThrow(
        /; command not sent$/u,
      );
      expect(drone.commands).toEqual([]);
    });
  });

  it.each([
    ['over another port', { keep_port: false }],
    ['unnoticed, behind the same radio', { keep_port: true }],
  ])('gets new requests after a restart %s, and stays the same asset', async (_title, how) => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ airborne: true });
      await lab.sees('gps');
      await drone.reboot(how);
      lab.outbox.clear();
      await lab.sees('gps');
      await lab.sees('sys_status', ({ armed }) => armed === false);
      expect(lab.hub.assets()).toHaveLength(1);
      expect(lab.outbox.drafts.filter(({ channel }) => channel.endsWith('asset_status'))).toEqual([]);
    });
  });

  it('is received despite garbage and losses', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ airborne: true });
      drone.lose_every = 4;
      for (let count = 0; count < 50; count += 1)
        drone.sendRaw(Uint8Array.from({ length: 200 }, (_, at) => (at * 7) & 0xff));
      await lab.sees('gps');
      await lab.sees('battery');
      expect(await lab.sees('sys_status', ({ ekf_ok }) => ekf_ok === true)).toMatchObject({
        flight_mode: 'AUTO',
      });
    });
  });

  it('goes offline once after the configured silence, and comes back online', async () => {
    await withLab({ offline_after_s: 2 }, async (lab) => {
      const drone = await lab.fly();
      await lab.until('online');
      drone.silent = true;
      const edge = await lab.outbox.until(
        ({ channel, data }) => channel.endsWith('asset_status') && data?.['status'] === 'offline',
      );
      expect(edge.data).toMatchObject({ reason: texts.silent(2, 'field') });
      drone.silent = false;
      await lab.until('online');
      expect(
        lab.outbox.drafts.filter(
          ({ channel, data }) => channel.endsWith('asset_status') && data?.['status'] === 'offline',
        ),
      ).toHaveLength(1);
    });
  });

  it('publishes the report of its radio', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly();
      await lab.until('online');
      drone.reportRadio(190);
      expect(await lab.sees('radio')).toEqual({
        rssi: 190,
        remote_rssi: 180,
        noise: 40,
        remote_noise: 45,
        rx_errors: 3,
      });
    });
  });

  it('receives our heartbeat as an onboard controller, never as the ground station of the pilot', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly();
      await lab.until('online');
      await eventually('two heartbeats', () => drone.beats.length >= 2);
      for (const beat of drone.beats)
        expect(beat).toMatchObject({ sysid: 245, compid: 191, fields: { type: 18, autopilot: 8 } });
    });
    expect(
      mavlinkOptions.safeParse({ links: [{ kind: 'udp_listen', port: 1 }], system_id: 255 }).success,
    ).toBe(false);
  });

  it('receives nothing from a passive kit, which has no commands', async () => {
    await withLab({ passive: true }, async (lab) => {
      const drone = await lab.fly({ autopilot: 'px4', airborne: true });
      await lab.until('online', 'mavlink:system-1');
      await lab.sees('gps', () => true, 'mavlink:system-1');
      drone.beatCamera();
      await lab.until('online', 'mavlink:system-1:component-100');
      // Between two heartbeats there are several ticks in which a request could be sent.
      for (const _beat of [1, 2]) {
        lab.outbox.clear();
        await lab.sees('sys_status', () => true, 'mavlink:system-1');
      }
      expect(drone.received).toBe(0);
      await expect(lab.command('arm', {}, { key: 'mavlink:system-1' })).rejects.toThrow(/has no command/u);
    });
  });

  it('has only the configured commands', async () => {
    await withLab(
      { vehicles: { [drone_key]: { name: 'Falcon', commands: ['return_home'] } } },
      async (lab) => {
        await lab.fly();
        await lab.until('online');
        await expect(lab.command('goto_waypoint', {})).rejects.toThrow(
          /has no command "goto_waypoint"; it has return_home/u,
        );
        expect(lab.hub.assets()).toMatchObject([{ name: 'Falcon' }]);
      },
    );
  });
});
