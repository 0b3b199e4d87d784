/** The driver as a whole, against simulated ArduPilot and PX4 vehicles on real sockets. */
import { describe, expect, it } from 'vitest';
import { mavlink } from '../../../../drivers/mavlink/mavlink.ts';
import { FakeDrone, freeUdpPort } from '../../../fakes/fake-drone.ts';
import { driverConformance } from '../../../support/driver-conformance.ts';
import { drone_key, withLab } from './mavlink-lab.ts';

describe('the mavlink driver', () => {
  let port = 0;
  let drone: FakeDrone | undefined;
  driverConformance({
    driver: mavlink,
    options: () => ({ links: [{ kind: 'udp_listen', host: '127.0.0.1', port: port === 0 ? 14_550 : port }] }),
    peer: {
      async start() {
        drone?.stop();
        port = await freeUdpPort();
        drone = new FakeDrone({ port, airborne: true });
        await drone.start();
      },
      lose: async () => void (drone && (drone.silent = true)),
      restore: async () => void (drone && (drone.silent = false)),
      stop: async () => drone?.stop(),
    },
  });
});

describe.concurrent('a vehicle on the network', () => {
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
});
