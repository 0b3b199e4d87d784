/** Vehicles that hover and fly forward: quadplanes of ArduPilot and VTOLs of PX4. */
import { describe, expect, it } from 'vitest';
import { type MavlinkLab, withLab } from '../mavlink-lab.ts';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';

const type_vtol = 22;
const command_takeoff = 22;
const command_change_speed = 178;
const [forward, hover] = [4, 3];
const [qloiter, loiter] = [19, 12];

async function withVtol(
  about: Parameters<MavlinkLab['fly']>[0],
  fn: (lab: MavlinkLab, drone: FakeDrone) => Promise<void>,
): Promise<void> {
  await withLab(async (lab) => {
    const drone = await lab.fly({ type: 1, quadplane: true, ...about });
    await lab.sees('gps', ({ relative_alt_m }) => relative_alt_m !== null);
    await lab.sees('sys_status', ({ ekf_ok, pre_arm_check }) => ekf_ok !== null && pre_arm_check !== null);
    // Requested after EXTENDED_SYS_STATE, which shows that it is one.
    await lab.sees('vfr_hud');
    await fn(lab, drone);
  });
}

/** Changes how it flies, and resolves when the driver has received that: datagrams keep their order on the loopback. */
async function flies(lab: MavlinkLab, drone: FakeDrone, vtol_state: number): Promise<void> {
  drone.vtol_state = vtol_state;
  drone.send('EXTENDED_SYS_STATE', { vtol_state, landed_state: 2 });
  drone.flight.mode = 'RTL';
  await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'RTL');
}

describe.concurrent('hold of a quadplane', () => {
  it('keeps it hovering where it hovers: LOITER would accelerate to forward flight', async () => {
    await withVtol({ airborne: true }, async (lab, drone) => {
      expect(await lab.command('hold')).toMatchObject({ flight_mode: 'QLOITER', acknowledged: true });
      expect(drone.commands.at(-1)).toMatchObject({ command: 176, param2: qloiter });
    });
  });

  it('lets it circle in forward flight', async () => {
    await withVtol({ airborne: true }, async (lab, drone) => {
      await flies(lab, drone, forward);
      expect(await lab.command('hold')).toMatchObject({ flight_mode: 'LOITER' });
      expect(drone.commands.at(-1)).toMatchObject({ command: 176, param2: loiter });
    });
  });
});

describe.concurrent('takeoff of a quadplane', () => {
  it('climbs to its height above home from ground that is higher than home', async () => {
    await withVtol({ airborne: false }, async (lab, drone) => {
      drone.flight.height_m = 0.25;
      drone.flight.armed = true;
      drone.flight.mode = 'GUIDED';
      await lab.sees('gps', ({ relative_alt_m }) => relative_alt_m === 0.25);
      await lab.sees('sys_status', ({ armed, flight_mode }) => armed === true && flight_mode === 'GUIDED');
      const result = await lab.command('takeoff', { height_m: 5 }, { remaining_ms: 20_000 });
      expect(result).toMatchObject({ height_above_home_m: 5, acknowledged: true });
      const sent = drone.commands.find(({ command }) => command === command_takeoff);
      expect(sent).toMatchObject({ param7: 4.75 });
    });
  });
});

describe.concurrent('set_speed of a VTOL of PX4', () => {
  it.each([
    { state: hover, what: 'over ground while it hovers', speed_type: 1 },
    { state: forward, what: 'through the air in forward flight', speed_type: 0 },
  ])('is the speed $what', async ({ state, speed_type }) => {
    await withVtol(
      { autopilot: 'px4', type: type_vtol, quadplane: false, airborne: true },
      async (lab, drone) => {
        await flies(lab, drone, state);
        await lab.command('set_speed', { speed_mps: 12 });
        const sent = drone.commands.find(({ command }) => command === command_change_speed);
        expect(sent).toMatchObject({ param1: speed_type, param2: 12 });
      },
    );
  });
});
