/**
 * What releases of the autopilots send, and do not send: telemetry is right, the commands are those of the vehicle, it is flown, and after
 * half a minute nothing has gone dark.
 */
import { describe, expect, it } from 'vitest';
import { command_names, type CommandName } from '../../../../../drivers/mavlink/options.ts';
import type { Telemetry } from '../../../../../drivers/mavlink/sim/telemetry.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import type { JsonObject } from '../../../../../src/contract/json.ts';
import { sleep } from '../../../../../src/platform/time.ts';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { near } from '../commands/commands-lab.ts';
import { drone_key, withLab } from '../mavlink-lab.ts';

const no_uid = '0000000000000000';
const uid2 = Array.from({ length: 18 }, (_, at) => (at < 12 ? 0xab : 0));
const long_key = `mavlink:${Buffer.from(uid2).toString('hex')}`;
const never = new AbortController().signal;

interface Row {
  /** Its release, and where its habits are written. */
  readonly release: string;
  readonly about?: Partial<ConstructorParameters<typeof FakeDrone>[0]>;
  readonly key?: string;
  /** A mode that came with the release, by its number. */
  readonly mode: readonly [number: number, name: string];
  readonly habits?: Partial<
    Pick<
      FakeDrone,
      'changes_to_mavlink2' | 'fills' | 'modes' | 'react' | 'speaks_mavlink1' | 'streams_only' | 'uid2'
    >
  > & { readonly lacks?: readonly Telemetry[] };
  /** Beyond what each row shows. */
  readonly shows?: Readonly<Record<string, JsonObject>>;
  /** Commands that it has not; those of a multicopter of the autopilot when omitted. */
  readonly lacks?: readonly CommandName[];
  /** Where it differs from `flying`. */
  readonly sees?: Readonly<Record<string, (data: JsonObject) => boolean>>;
  /** The modes after these commands, where they are not those of a multicopter. */
  readonly flown?: Readonly<Partial<Record<CommandName, string>>>;
}

const unmoved: readonly CommandName[] = ['takeoff', 'land', 'set_altitude'];

/** MISSION_CURRENT with a number alone: before PX4 1.14 (PX4-Autopilot#19998) and ArduPilot 4.4 (ArduPilot#22905). */
const number_alone = { MISSION_CURRENT: { total: 0, mission_state: 0, mission_mode: 0 } };
/** Before ArduPilot 4.3 (AP_GPS::send_mavlink_gps_raw). */
const no_ellipsoid = { GPS_RAW_INT: { alt_ellipsoid: 0 } };
/** Before the mode that a station may ask for: PX4 1.15 (PX4-Autopilot#22421), ArduPilot 4.7 (ArduPilot#28580). */
const px4 = (main: number, sub: number): number => ((sub << 24) | (main << 16)) >>> 0;
const starts_in_mavlink1 = { speaks_mavlink1: true, changes_to_mavlink2: true };

const rows: readonly Row[] = [
  {
    release: 'PX4 1.12: no events; MAVLink 1 at first, as up to 1.16 (PX4-Autopilot#25583)',
    about: { autopilot: 'px4' },
    habits: { ...starts_in_mavlink1, fills: number_alone },
    mode: [px4(4, 9), 'PRECLAND'],
  },
  {
    release: 'PX4 1.13',
    about: { autopilot: 'px4' },
    habits: { ...starts_in_mavlink1, fills: number_alone },
    mode: [px4(3, 1), 'ORBIT'],
  },
  {
    release: 'PX4 1.14',
    about: { autopilot: 'px4' },
    habits: starts_in_mavlink1,
    mode: [px4(4, 10), 'VTOL_TAKEOFF'],
  },
  {
    release: 'PX4 1.15: modes of its own and their list (PX4-Autopilot#22421)',
    about: { autopilot: 'px4' },
    habits: { ...starts_in_mavlink1, modes: [{ custom_mode: px4(4, 11), mode_name: 'My mode' }] },
    mode: [px4(4, 11), 'My mode'],
  },
  {
    release: 'PX4 1.16',
    about: { autopilot: 'px4' },
    habits: starts_in_mavlink1,
    mode: [px4(3, 2), 'POSITION_SLOW'],
  },
  { release: 'PX4 1.17', about: { autopilot: 'px4' }, mode: [px4(2, 0), 'ALTCTL'] },
  { release: 'PX4 1.18', about: { autopilot: 'px4' }, mode: [px4(11, 0), 'ALTITUDE_CRUISE'] },
  {
    release:
      'Copter 3.6: streams alone, home by request (ArduPilot#12355, #4503), no landed state (ArduPilot#8587)',
    about: { uid: no_uid },
    key: 'mavlink:system-1',
    habits: {
      streams_only: true,
      lacks: ['EXTENDED_SYS_STATE', 'TERRAIN_REPORT'],
      fills: { ...number_alone, ...no_ellipsoid },
      // It has no command for a target.
      react: ({ command }, execute) => (command === 192 ? { result: 3 } : execute()),
    },
    mode: [22, 'FLOWHOLD'],
    shows: { gps: { alt_m: null, alt_amsl_m: 508 } },
  },
  {
    release: 'Copter 4.0 and 4.1: the longer number alone (ArduPilot#19502)',
    about: { uid: no_uid },
    key: long_key,
    habits: { uid2, fills: { ...number_alone, ...no_ellipsoid } },
    mode: [26, 'AUTOROTATE'],
  },
  { release: 'Copter 4.3', habits: { fills: number_alone }, mode: [27, 'AUTO_RTL'] },
  { release: 'Copter 4.4', mode: [28, 'TURTLE'] },
  {
    release: 'Copter 4.7: a list of modes (ArduPilot#28580)',
    habits: { modes: [{ custom_mode: 99, mode_name: 'LUA' }] },
    mode: [99, 'LUA'],
  },
  {
    release: 'quadplane 4.1, which reports no VTOL state (ArduPilot#19137)',
    about: { type: 1, quadplane: true },
    habits: { lacks: ['EXTENDED_SYS_STATE'], fills: { ...number_alone, ...no_ellipsoid } },
    mode: [24, 'THERMAL'],
    lacks: ['orbit', 'surface', 'set_heading', 'change_return_altitude'],
    flown: { hold: 'LOITER', land: 'QLAND', return_home: 'RTL' },
  },
  {
    release: 'quadplane 4.5',
    about: { type: 1, quadplane: true },
    mode: [25, 'LOITER_ALT_QLAND'],
    lacks: ['orbit', 'surface', 'set_heading', 'change_return_altitude'],
    flown: { hold: 'QLOITER', land: 'QLAND', return_home: 'RTL' },
  },
  {
    release: 'boat of Rover 3.5: streams alone; no landed state and a home without a height',
    about: { type: 11 },
    habits: {
      streams_only: true,
      lacks: ['EXTENDED_SYS_STATE'],
      fills: { ...number_alone, ...no_ellipsoid },
    },
    mode: [12, 'SMART_RTL'],
    lacks: ['orbit', 'surface', 'set_heading', 'change_return_altitude', ...unmoved],
    sees: { gps: ({ lat, relative_alt_m }) => lat !== null && relative_alt_m === null },
    flown: { hold: 'LOITER', return_home: 'RTL' },
  },
  {
    release: 'boat of Rover 4.4',
    about: { type: 11 },
    mode: [8, 'DOCK'],
    lacks: ['orbit', 'surface', 'set_heading', 'change_return_altitude', ...unmoved],
    sees: { gps: ({ lat, relative_alt_m }) => lat !== null && relative_alt_m === null },
    flown: { hold: 'LOITER', return_home: 'RTL' },
  },
];

/** What each vehicle shows in the air, unless its row says otherwise. */
const flying: Readonly<Record<string, (data: JsonObject) => boolean>> = {
  gps: ({ relative_alt_m }) => relative_alt_m === 20,
  gps_raw: ({ lat }) => lat !== null,
  attitude: ({ roll }) => roll !== null,
  vfr_hud: ({ heading }) => heading !== null,
  battery: ({ remaining_pct }) => remaining_pct === 76,
  home: ({ lat }) => lat !== null,
  wind: ({ speed_mps }) => speed_mps !== null,
  sys_status: ({ armed, ekf_ok, alarms }) => armed === true && ekf_ok === true && alarms === undefined,
};

const of_multicopters: Readonly<Record<'ardupilot' | 'px4', readonly CommandName[]>> = {
  ardupilot: ['orbit', 'surface'],
  px4: ['surface', 'enable_fence'],
};

describe.concurrent('A vehicle of', () => {
  it.each(rows)('$release', async ({ about, key = drone_key, mode, habits, shows = {}, ...row }) => {
    const { autopilot = 'ardupilot' } = about ?? {};
    const { lacks = of_multicopters[autopilot], sees = {}, flown = {} } = row;
    await withLab(async (lab) => {
      const drone = await lab.fly({ airborne: true, ...about });
      Object.assign(drone, { ...habits, lacks: new Set(habits?.lacks) });
      Object.assign(drone.flight, { mode: 'GUIDED', height_m: 20 });
      const seesAll = async (): Promise<void> => {
        for (const [feed, fits] of Object.entries({ ...flying, ...sees })) await lab.sees(feed, fits, key);
      };
      await seesAll();
      for (const [feed, data] of Object.entries(shows))
        expect(await lab.sees(feed, () => true, key)).toMatchObject(data);
      // Its identity is requested again after 30 s.
      await sleep(habits?.speaks_mavlink1 === true ? 35_000 : 12_000, never);
      lab.outbox.clear();
      await seesAll();
      expect(lab.hub.assets().map((asset) => asset.key)).toEqual([key]);
      const isMissing = (name: CommandName): boolean =>
        !('command' in lab.hub.findCommand(assetId(kit_id, key), name));
      expect(command_names.filter(isMissing).toSorted()).toEqual([...lacks, 'emergency_stop'].toSorted());
      [drone.odd_mode] = mode;
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === mode[1], key);
      drone.odd_mode = undefined;
      const guided = autopilot === 'px4' ? 'LOITER' : 'GUIDED';
      lab.outbox.clear();
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === guided, key);
      expect(await lab.command('goto_waypoint', near, { key })).toMatchObject({ lat: near.lat });
      const usual = { hold: autopilot === 'px4' ? 'LOITER' : 'BRAKE', land: 'LAND', return_home: 'RTL' };
      for (const [name, flight_mode] of Object.entries(Object.keys(flown).length > 0 ? flown : usual))
        expect(await lab.command(name, {}, { key })).toMatchObject({ flight_mode });
    });
  });
});
