/** Takeoff, hold, land, altitude and speed; and goto_waypoint that waits for its arrival. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { command_names, mavlinkOptions } from '../../../../../drivers/mavlink/options.ts';
import { vehicleCommands } from '../../../../../drivers/mavlink/mavlink.ts';
import type { Contact } from '../../../../../drivers/mavlink/vehicles/contact.ts';
import { StoredMissions } from '../../../../../drivers/mavlink/vehicles/stored-missions.ts';
import { texts as vehicle_texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import { FakeDrone, field } from '../../../../fakes/fake-drone.ts';
import { eventually } from '../../../../support/eventually.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { autopilots, near } from './commands-lab.ts';
import { no_logs } from '../vehicles/registry-lab.ts';
import { drone_key, withDrone, withLab, type MavlinkLab } from '../mavlink-lab.ts';

const close_by = { lat: field.lat + 0.0008, lon: field.lon, alt_m: 40 };

describe.concurrent('takeoff', () => {
  it.each(autopilots)('completes at its height above home, with progress: %s', async (autopilot) => {
    await withDrone({ autopilot }, async (lab, drone) => {
      await expect(lab.command('takeoff', { height_m: 10 })).rejects.toThrow(texts.not_armed);
      drone.flight.mode = 'GUIDED';
      drone.flight.armed = true;
      await lab.sees('sys_status', ({ armed }) => armed === true);
      const steps: (number | undefined)[] = [];
      const progress = (_sentence: string, pct?: number): void => void steps.push(pct);
      const result = await lab.command('takeoff', { height_m: 10 }, { remaining_ms: 30_000, progress });
      expect(result).toMatchObject({ height_above_home_m: 10, alt_amsl_m: 498, acknowledged: true });
      expect(drone.flight.height_m).toBeGreaterThan(8);
      expect(drone.commands.at(-1)).toMatchObject({ command: 22, param7: autopilot === 'px4' ? 498 : 10 });
      expect(steps.length).toBeGreaterThan(2);
      await expect(lab.command('takeoff', { height_m: 10 })).rejects.toThrow(texts.airborne_already);
    });
  });

  it('is refused outside the local limits and in another mode than GUIDED', async () => {
    await withDrone({}, async (lab, drone) => {
      await expect(lab.command('takeoff', { height_m: 121 })).rejects.toThrow('too_big');
      drone.flight.armed = true;
      await lab.sees('sys_status', ({ armed }) => armed === true);
      await expect(lab.command('takeoff', { height_m: 10 })).rejects.toThrow(texts.takeoff_mode);
      expect(drone.commands).toEqual([]);
    });
  });

  it('fails when the pilot takes over on the way up', async () => {
    await withDrone({}, async (lab, drone) => {
      drone.flight.mode = 'GUIDED';
      drone.flight.armed = true;
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'GUIDED');
      const climbing = lab.command('takeoff', { height_m: 100 }, { remaining_ms: 30_000 });
      climbing.catch(() => undefined);
      await lab.sees('gps', ({ relative_alt_m }) => Number(relative_alt_m) > 3);
      drone.flight.mode = 'LAND';
      await expect(climbing).rejects.toThrow(texts.unknown_outcome(texts.abandoned('Quadrotor 1', 'LAND')));
    });
  });
});

describe.concurrent('hold', () => {
  it.each(autopilots)('stops the vehicle on its way to a point: %s', async (autopilot) => {
    await withDrone({ autopilot, airborne: true }, async (lab, drone) => {
      await lab.command('goto_waypoint', { lat: field.lat + 0.01, lon: field.lon, alt_m: 40 });
      const flight_mode = autopilot === 'px4' ? 'LOITER' : 'BRAKE';
      expect(await lab.command('hold')).toEqual({ flight_mode, acknowledged: true });
      // PX4 flies to points in its hold mode: its target must have changed too.
      expect(drone.flight.target).toBeUndefined();
    });
  });

  it('is not completed by PX4 while it flies on to its point', async () => {
    await withDrone({ autopilot: 'px4', airborne: true }, async (lab, drone) => {
      await lab.command('goto_waypoint', { lat: field.lat + 0.01, lon: field.lon, alt_m: 40 });
      drone.react = () => ({ result: 0 });
      await expect(lab.command('hold')).rejects.toThrow(/was not observed .*; outcome unknown$/u);
    });
  });

  it('stops a PX4 whose position is requested rarely and is not sent by itself', async () => {
    await withLab({ streams: { position_hz: 0.1, status_hz: 0.1 } }, async (lab) => {
      const drone = await lab.fly({ autopilot: 'px4', airborne: true });
      drone.stopStream('GLOBAL_POSITION_INT');
      await lab.sees('gps', ({ relative_alt_m }) => relative_alt_m !== null);
      await lab.command('goto_waypoint', { lat: field.lat + 0.01, lon: field.lon, alt_m: 40 });
      expect(await lab.command('hold')).toMatchObject({ flight_mode: 'LOITER' });
    });
  });

  it('and land pre-empt other commands', async () => {
    await withDrone({ airborne: true }, async (lab) => {
      const isSafety = (name: string, payload = {}): boolean => {
        const found = lab.hub.findCommand(assetId(kit_id, drone_key), name);
        return 'command' in found && found.command.read(payload).is_safety;
      };
      expect([isSafety('hold'), isSafety('land')]).toEqual([true, true]);
      expect(isSafety('takeoff', { height_m: 10 })).toBe(false);
      expect(isSafety('set_speed', { speed_mps: 5 })).toBe(false);
    });
  });
});

describe.concurrent('land of an ArduPlane', () => {
  it('lands it in AUTOLAND where it lists that mode, and is refused where it does not', async () => {
    await withDrone({ type: 1, airborne: true }, async (lab, drone) => {
      await expect(lab.command('land')).rejects.toThrow(/has no mode LAND; command not sent$/u);
      drone.modes = [
        { custom_mode: 10, mode_name: 'AUTO' },
        { custom_mode: 26, mode_name: 'AUTOLAND' },
      ];
      for (const mode of drone.modes) {
        const place = { number_modes: 2, mode_index: 1, standard_mode: 0, properties: 0 };
        drone.send('AVAILABLE_MODES', { ...mode, ...place });
      }
      drone.flight.mode = 'LOITER';
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'LOITER');
      expect(await lab.command('land')).toEqual({ flight_mode: 'AUTOLAND', acknowledged: true });
      expect(drone.commands.at(-1)).toMatchObject({ command: 176, param2: 26 });
      await eventually('it is on the ground and disarmed', () => !drone.flight.armed);
    });
  });
});

describe.concurrent('set_altitude and set_speed', () => {
  it.each(autopilots)('change the altitude at the present place: %s', async (autopilot) => {
    await withDrone({ autopilot, airborne: true }, async (lab, drone) => {
      const result = await lab.command('set_altitude', { alt_m: 60 });
      expect(result).toMatchObject({ height_above_home_m: 60, alt_amsl_m: 548, acknowledged: true });
      expect(drone.flight.target).toMatchObject({ height_m: 60 });
      await expect(lab.command('set_altitude', { alt_m: 121 })).rejects.toThrow('too_big');
    });
  });

  it.each(autopilots)('observe the new speed of a vehicle on its way: %s', async (autopilot) => {
    await withDrone({ autopilot, airborne: true }, async (lab) => {
      await lab.command('goto_waypoint', { lat: field.lat + 0.01, lon: field.lon, alt_m: 40 });
      await lab.sees('vfr_hud', ({ groundspeed }) => Number(groundspeed) > 7);
      expect(await lab.command('set_speed', { speed_mps: 4 })).toEqual({
        speed_mps: 4,
        effect: 'observed',
        acknowledged: true,
      });
      // It has that speed already, which shows nothing.
      expect(await lab.command('set_speed', { speed_mps: 4 })).toMatchObject({ effect: 'not observable' });
    });
  });

  it('say that the speed of a vehicle that hovers cannot be observed, and have a limit', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.flight.mode = 'LOITER';
      await lab.sees('vfr_hud', ({ groundspeed }) => groundspeed === 0);
      expect(await lab.command('set_speed', { speed_mps: 5 })).toEqual({
        speed_mps: 5,
        effect: 'not observable',
        acknowledged: true,
      });
      expect(drone.commands.at(-1)).toMatchObject({ command: 178, param1: 1, param2: 5 });
      await expect(lab.command('set_speed', { speed_mps: 16 })).rejects.toThrow('too_big');
    });
  });
});

describe.concurrent('goto_waypoint with wait_for_arrival', () => {
  it.each(autopilots)('completes on arrival, with progress: %s', async (autopilot) => {
    await withDrone({ autopilot, airborne: true }, async (lab, drone) => {
      const steps: (number | undefined)[] = [];
      const progress = (_sentence: string, pct?: number): void => void steps.push(pct);
      const target = { ...close_by, wait_for_arrival: true };
      const result = await lab.command('goto_waypoint', target, { remaining_ms: 40_000, progress });
      expect(result).toMatchObject({ arrived: true, acknowledged: true });
      expect(Math.abs(drone.flight.lat - target.lat) * 111_195).toBeLessThan(4);
      expect(steps.length).toBeGreaterThan(1);
    });
  });

  it('has time for the longest way that is allowed, where the dispatch names none', async () => {
    await withDrone({ airborne: true }, async (lab) => {
      const found = lab.hub.findCommand(assetId(kit_id, drone_key), 'goto_waypoint');
      if (!('command' in found)) throw new Error('no such command');
      const limitOf = (more: object): number | undefined =>
        found.command.read({ ...close_by, ...more }).timeout_ms;
      expect([limitOf({}), limitOf({ wait_for_arrival: true })]).toEqual([undefined, 1_010_000]);
    });
  });

  it.each(autopilots)(
    'is not completed on the way to the target of another station: %s',
    async (autopilot) => {
      await withDrone({ autopilot, airborne: true }, async (lab, drone) => {
        const passed = { lat: field.lat + 0.0005, lon: field.lon, alt_m: 40 };
        const underway = Promise.withResolvers<undefined>();
        const stopping = new AbortController();
        const flying = lab.command(
          'goto_waypoint',
          { ...passed, wait_for_arrival: true },
          {
            remaining_ms: 120_000,
            signal: stopping.signal,
            progress: () => underway.resolve(undefined),
          },
        );
        flying.catch(() => underway.resolve(undefined));
        await underway.promise;
        // Straight on.
        drone.flight.target = { lat: field.lat + 0.1, lon: field.lon, height_m: 40 };
        const past = { ...passed, lat: passed.lat + 0.0002 };
        await eventually('it has passed the target', () => drone.flight.lat > past.lat);
        await lab.sees('gps', ({ lat }) => Number(lat) > past.lat);
        stopping.abort();
        await expect(flying).rejects.toThrow(/^the task was stopped on the way/u);
      });
    },
  );

  it('has an unknown outcome when another vehicle with its system id appears on the way', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      const target = { lat: field.lat + 0.01, lon: field.lon, alt_m: 40, wait_for_arrival: true };
      const flying = lab.command('goto_waypoint', target, { remaining_ms: 40_000 });
      await drone.next(192);
      const other = new FakeDrone({ port: lab.port, uid: '00000000c0ffee02', airborne: true });
      other.shareAddressOf(drone);
      other.flight.mode = 'GUIDED';
      await other.start();
      await expect(flying).rejects.toThrow(
        texts.unknown_outcome(texts.about('Quadrotor 1', vehicle_texts.id_shared(1))),
      );
      other.stop();
    });
  });

  it('fails at its deadline with the distance that is left, and the vehicle flies on', async () => {
    await withDrone({ airborne: true }, async (lab) => {
      const target = { lat: field.lat + 0.01, lon: field.lon, alt_m: 40, wait_for_arrival: true };
      await expect(lab.command('goto_waypoint', target, { remaining_ms: 10_000 })).rejects.toThrow(
        /^Quadrotor 1 did not arrive in time \(\d+ m left\); it continues unless it is stopped$/u,
      );
    });
  });
});

describe.concurrent('The schemas of flight commands', () => {
  it('carry the datum and the local limits; rovers have no commands for the air', async () => {
    await withLab({ goto: { height_min_m: 5, height_max_m: 50 } }, async (lab) => {
      await lab.fly();
      await lab.until('online');
      const schemaOf = (name: string): unknown => {
        const found = lab.hub.findCommand(assetId(kit_id, drone_key), name);
        return 'command' in found ? found.command.input_schema : undefined;
      };
      expect(schemaOf('takeoff')).toMatchObject({
        properties: { height_m: { minimum: 5, maximum: 50, 'x-kit-datum': 'relative', title: 'Height' } },
      });
      expect(schemaOf('goto_waypoint')).toMatchObject({
        properties: { alt_m: { minimum: 5, maximum: 50, 'x-kit-datum': 'relative' } },
        required: ['lat', 'lon', 'alt_m'],
      });
      const rover = await lab.fly({ type: 10, sysid: 2, uid: '00000000c0ffee02' });
      expect(rover.options.type).toBe(10);
      const key = 'mavlink:00000000c0ffee02';
      await lab.until('online', key);
      const offered = ['takeoff', 'land', 'set_altitude', 'hold', 'set_speed'].filter(
        (name) => 'command' in lab.hub.findCommand(assetId(kit_id, key), name),
      );
      expect(offered).toEqual(['hold', 'set_speed']);
    });
  });

  // A blimp (ArduPilot#18586), a generic autopilot (QGC#13472), a submarine (ArduPilot#26648).
  it.each([
    [
      'ArduRover',
      { autopilot: 'ardupilot', kind: 'rover' },
      ['takeoff', 'land', 'set_altitude', 'surface', 'orbit', 'set_heading', 'change_return_altitude'],
    ],
    [
      'ArduSub',
      { autopilot: 'ardupilot', kind: 'sub' },
      [
        'return_home',
        'goto_waypoint',
        'takeoff',
        'land',
        'set_altitude',
        'set_speed',
        'orbit',
        'upload_mission',
        'start_mission',
        'resume_mission',
        'reposition',
        'set_heading',
        'change_return_altitude',
      ],
    ],
    ['PX4 plane', { autopilot: 'px4', kind: 'plane' }, ['surface', 'set_heading', 'enable_fence']],
  ] as const)('are those that it can carry out: %s', (_label, about, lacks) => {
    expect(offeredTo(about)).toEqual(
      command_names.filter((name) => name !== 'emergency_stop' && !lacks.some((each) => each === name)),
    );
  });

  const home_alone = ['arm', 'disarm', 'return_home', 'download_mission', 'clear_mission', 'get_params'];
  it.each([
    // Blimp/GCS_MAVLink_Blimp.cpp: a target and a takeoff are accepted and ignored, and there is no mode for missions.
    [
      'Blimp',
      { autopilot: 'ardupilot', kind: 'blimp' },
      [...home_alone, 'set_mode', 'hold', 'land', 'download_log'],
    ],
    ['airship of PX4', { autopilot: 'px4', kind: 'blimp' }, [...home_alone, 'set_mode', 'download_log']],
    ['balloon', { autopilot: 'ardupilot', kind: 'other' }, [...home_alone, 'download_log']],
    ['generic autopilot', { autopilot: 'other', kind: 'copter' }, home_alone],
    ['iNav, Betaflight', { autopilot: 'other', kind: 'copter', isTelemetryOnly: true }, []],
  ] as const)('are what it can carry out, or MAVLink defines for all: %s', (_label, about, offered) => {
    expect(offeredTo(about).toSorted()).toEqual([...offered].toSorted());
  });
});

type About = Pick<Contact, 'autopilot' | 'kind'> & { readonly isTelemetryOnly?: boolean };

function offeredTo(about: About): readonly string[] {
  const options = mavlinkOptions.parse({ links: [{ kind: 'udp_listen', port: 14_550 }] });
  const commanded = {
    address: () => ({ obstacle: 'offline' }),
    conflict: () => undefined,
    mixture: () => undefined,
    stored: new StoredMissions(),
    logs: no_logs,
  };
  const enabled = command_names.filter((name) => name !== 'emergency_stop');
  const offered = new Set(
    vehicleCommands(commanded, options, enabled, { isTelemetryOnly: false, ...about }).map(
      ({ name }) => name,
    ),
  );
  return command_names.filter((name) => offered.has(name));
}

const aside = { lat: field.lat + 0.0005, lon: field.lon + 0.0005, height_m: 30 };
const elsewhere = { lat: field.lat + 0.001, lon: field.lon + 0.001, height_m: 30 };

describe.concurrent('goto_waypoint around an obstacle', () => {
  it('is completed when distance and direction of the target are reported', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.flight.around = aside;
      expect(await lab.command('goto_waypoint', near)).toMatchObject({
        lat: near.lat,
        going_around: true,
        acknowledged: true,
      });
    });
  });

  it('is not completed when they lead elsewhere', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.flight.around = aside;
      drone.react = () => {
        drone.flight.mode = 'GUIDED';
        drone.flight.target = elsewhere;
        return { result: 0 };
      };
      await expect(lab.command('goto_waypoint', near)).rejects.toThrow(
        /was not observed .*; outcome unknown$/u,
      );
    });
  });

  it('does not concern a PX4, which reports its target', async () => {
    await withDrone({ airborne: true, autopilot: 'px4' }, async (lab, drone) => {
      await lab.command('goto_waypoint', near);
      expect(drone.requests).not.toContain(62);
      const result: Awaited<ReturnType<MavlinkLab['command']>> = await lab.command('goto_waypoint', near);
      expect(result).not.toHaveProperty('going_around');
    });
  });
});
