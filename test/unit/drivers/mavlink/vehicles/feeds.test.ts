/** Feeds from messages: units, and every value that means "unknown". */
import { describe, expect, it } from 'vitest';
import {
  attitudeFeed,
  batteryFeed,
  batteryReading,
  gpsFeed,
  gpsRawFeed,
  radioFeed,
  systemBattery,
  vfrHudFeed,
} from '../../../../../drivers/mavlink/vehicles/feeds.ts';
import { flightMode, modeNumbers } from '../../../../../drivers/mavlink/vehicles/modes.ts';
import { senderOf } from '../../../../../drivers/mavlink/reports/kind.ts';
import {
  preArmCheck,
  ardupilotHealth,
  px4Health,
} from '../../../../../drivers/mavlink/vehicles/situation.ts';
import { Flight } from '../../../../../drivers/mavlink/sim/flight.ts';
import { SimMissions } from '../../../../../drivers/mavlink/sim/missions.ts';
import { type SimState, telemetry } from '../../../../../drivers/mavlink/sim/telemetry.ts';
import { StatusTexts } from '../../../../../drivers/mavlink/reports/status-text.ts';
import { field } from '../../../../fakes/fake-drone.ts';

const state: SimState = {
  autopilot: 'ardupilot',
  flight: new Flight(field, { airborne: true }),
  boot_ms: 1_000,
  gps: 'ok',
  pre_arm_ok: true,
  hasFence: false,
  parameters: new Map(),
  throttle_us: 1_500,
  vtol_state: 0,
  climb: { alt_m: 0, distance_m: 0 },
  type: 2,
  kind: 'copter',
  uid: '0000000000000001',
  missions: new SimMissions({ autopilot: 'ardupilot', home: field, reply: () => undefined }),
};
const position = telemetry.GLOBAL_POSITION_INT(state);
const gps = telemetry.GPS_RAW_INT(state);
const home = telemetry.HOME_POSITION(state);
const context = { gps, home, kind: 'copter', isAligned: true } as const;

describe('The gps feed', () => {
  it('publishes nothing at latitude 0, longitude 0', () => {
    expect(gpsFeed({ ...position, lat: 0, lon: 0 }, context)).toBeUndefined();
  });

  it('has no altitude above the ellipsoid if the receiver does not report it', () => {
    expect(gpsFeed(position, { ...context, gps: { ...gps, alt_ellipsoid: 0 } })).toMatchObject({
      alt_m: null,
      alt_amsl_m: 528,
    });
    // DroneCAN receivers until ArduPilot#29905, and Betaflight, send the height above the sea in its place (ArduPilot#29199).
    expect(gpsFeed(position, { ...context, gps: { ...gps, alt_ellipsoid: gps.alt } })).toMatchObject({
      alt_m: null,
    });
    expect(gpsRawFeed({ ...gps, alt_ellipsoid: gps.alt })).toMatchObject({ alt_m: null, alt_amsl_m: 528 });
    expect(gpsFeed(position, { ...context, gps: undefined })).toMatchObject({ alt_m: null });
    expect(gpsFeed(position, { ...context, gps: { ...gps, fix_type: 2 } })).toMatchObject({ alt_m: null });
  });

  it('has no height above home until home is known, and ignores a height of another datum', () => {
    expect(gpsFeed(position, { ...context, home: undefined })).toMatchObject({ relative_alt_m: null });
    expect(gpsFeed({ ...position, relative_alt: position.alt }, context)).toMatchObject({
      relative_alt_m: 40,
    });
  });

  it('has no height above home for a rover whose home has an impossible altitude', () => {
    const rover = { ...state, type: 10, kind: 'rover' } as const;
    const nonsense = telemetry.HOME_POSITION(rover);
    const at = telemetry.GLOBAL_POSITION_INT({ ...rover, flight: new Flight(field, { airborne: false }) });
    expect(nonsense.altitude).toBe(190);
    expect(gpsFeed(at, { ...context, kind: 'rover', home: nonsense })).toMatchObject({
      relative_alt_m: null,
      alt_amsl_m: 488,
    });
    expect(gpsFeed(at, { ...context, kind: 'rover' })).toMatchObject({
      relative_alt_m: expect.closeTo(0, 3) as number,
    });
  });

  it('has no heading until the autopilot has determined north', () => {
    expect(gpsFeed({ ...position, hdg: 65_535 }, context)).toMatchObject({ heading: null });
    expect(gpsFeed({ ...position, hdg: 0 }, { ...context, isAligned: false })).toMatchObject({
      heading: null,
    });
    expect(gpsFeed({ ...position, hdg: 35_999 }, context)).toMatchObject({ heading: 359.99 });
  });

  it('has the speed over ground in metres per second', () => {
    expect(gpsFeed({ ...position, vx: 300, vy: -400 }, context)).toMatchObject({ ground_speed: 5 });
  });
});

describe('The gps_raw feed', () => {
  it('has no position while the receiver has no fix', () => {
    const nothing = { lat: null, lon: null, alt_m: null, alt_amsl_m: null };
    expect(gpsRawFeed({ ...gps, fix_type: 1 })).toMatchObject({ ...nothing, fix_type: 1 });
    expect(gpsRawFeed({ ...gps, fix_type: 2 })).toMatchObject({ alt_m: null, alt_amsl_m: null });
    expect(gpsRawFeed({ ...gps, fix_type: 2 }).lat).toBeCloseTo(field.lat, 6);
  });

  it('converts sentinel values to null', () => {
    expect(gpsRawFeed({ ...gps, satellites_visible: 255, eph: 65_535, epv: 65_535 })).toMatchObject({
      satellites_visible: null,
      hdop: null,
      vdop: null,
    });
  });
});

describe('Two receivers', () => {
  const two = { ...gps, fix_type: 4, satellites_visible: 16 };

  it.each([
    ['the first one while it has a fix', 3, 1, 14],
    ['the second one when the first one has none', 1, 2, 16],
    ['the second one when the first one is gone', 0, 2, 16],
  ])('are shown as %s, with both beside it', (_, fix_type, receiver, satellites_visible) => {
    const feed = gpsRawFeed({ ...gps, fix_type }, two);
    expect(feed).toMatchObject({ receiver, satellites_visible, alt_m: 575.3 });
    expect(feed.receivers).toMatchObject([
      { receiver: 1, fix_type },
      { receiver: 2, fix_type: 4 },
    ]);
  });
});

describe('The battery feed', () => {
  const cells = (voltage_mv: number): number[] => [voltage_mv, ...Array.from({ length: 9 }, () => 65_535)];
  const battery = { ...telemetry.BATTERY_STATUS(), current_consumed: -1 };
  const feedOf = (statuses: readonly (typeof battery)[], voltage: number | null = null) =>
    batteryFeed(
      new Map(statuses.flatMap((each) => [[each.id, batteryReading(each)] as const].filter(isRead))),
      { voltage, current: null, remaining_pct: null },
    );
  type Read = readonly [number, NonNullable<ReturnType<typeof batteryReading>>];
  const isRead = (each: readonly [number, ReturnType<typeof batteryReading>]): each is Read =>
    each[1] !== undefined;

  // QGroundControl#9079, mavlink#1182, #1263, #1456, iNav#11913, PX4-Autopilot#18535.
  it('shows what keeps the vehicle in the air, the worst of it', () => {
    const avionics = { ...battery, battery_function: 3, voltages: cells(12_600), battery_remaining: 98 };
    const good = { ...battery, id: 1, battery_function: 2, voltages: cells(44_400), battery_remaining: 60 };
    const bad = { ...good, id: 2, battery_remaining: 11, charge_state: 3 };
    expect(feedOf([avionics, good])).toMatchObject({ voltage: 44.4, function: 'propulsion' });
    const feed = feedOf([avionics, good, bad]);
    expect(feed).toMatchObject({ remaining_pct: 11, charge_state: 'critical', function: 'propulsion' });
    expect(feed?.batteries?.map(({ id }) => id)).toEqual([0, 1, 2]);
  });

  it('takes the voltage of a battery on CAN, and of more cells than the message has places, from SYS_STATUS', () => {
    const can = { ...battery, voltages: cells(65_535) };
    expect(feedOf([can], 22.2)).toMatchObject({ voltage: 22.2, current: 12.5, remaining_pct: 76 });
    const twelve = { ...battery, voltages: Array.from({ length: 10 }, () => 4_200) };
    expect(feedOf([twelve], 50.4)).toMatchObject({ voltage: 50.4 });
    expect(feedOf([battery], 15.9)).toMatchObject({ voltage: 15.8 });
  });

  it('has the faults of a smart battery, what is consumed, the time left and the temperature', () => {
    const smart = {
      charge_state: 5,
      fault_bitmask: 0x14,
      current_consumed: 830,
      time_remaining: 240,
      temperature: 7_100,
    };
    expect(feedOf([{ ...battery, ...smart }])).toMatchObject({
      charge_state: 'failed',
      faults: ['cell_fail', 'over_temperature'],
      consumed_mah: 830,
      time_remaining_s: 240,
      temperature_c: 71,
    });
  });

  it('is not published where none is connected: 0 V and 0 % of iNav', () => {
    const none = { voltages: cells(0), current_battery: -1, battery_remaining: 0 };
    expect(batteryReading({ ...battery, ...none })).toBeUndefined();
    expect(
      systemBattery({ ...system, voltage_battery: 0, current_battery: -1, battery_remaining: 0 }),
    ).toBeUndefined();
  });

  const status = telemetry.BATTERY_STATUS();
  const system = telemetry.SYS_STATUS(state);

  it('sums the voltages of its cells', () => {
    expect(batteryReading(status)).toEqual({
      voltage: 15.8,
      current: 12.5,
      remaining_pct: 76,
      consumed_mah: 1_200,
    });
    expect(batteryReading({ ...status, voltages_ext: [4_000, 0, 0, 0] })).toMatchObject({ voltage: 19.8 });
  });

  it('is not published without a battery monitor', () => {
    const none = { ...system, voltage_battery: 0, current_battery: -1, battery_remaining: -1 };
    expect(systemBattery(none)).toBeUndefined();
    expect(systemBattery({ ...none, voltage_battery: 65_535 })).toBeUndefined();
    // iNav, Betaflight
    expect(systemBattery({ ...none, battery_remaining: 100 })).toBeUndefined();
    expect(systemBattery({ ...none, battery_remaining: 100, current_battery: 250 })).toEqual({
      voltage: null,
      current: 2.5,
      remaining_pct: null,
    });
    expect(systemBattery({ ...none, voltage_battery: 12_600 })).toEqual({
      voltage: 12.6,
      current: null,
      remaining_pct: null,
    });
  });

  it('shows the battery with the lowest id, and lists all of several', () => {
    const one = { voltage: 12, current: null, remaining_pct: 50 };
    const two = { voltage: 24, current: 1, remaining_pct: 90 };
    type Reading = { voltage: number | null; current: number | null; remaining_pct: number | null };
    expect(batteryFeed(new Map([[0, one]]))).toEqual(one);
    expect(
      batteryFeed(
        new Map<number, Reading>([
          [3, two],
          [0, one],
        ]),
      ),
    ).toEqual({
      ...one,
      batteries: [
        { id: 0, ...one },
        { id: 3, ...two },
      ],
    });
  });
});

describe('The attitude, vfr_hud and radio feeds', () => {
  it('convert radians to degrees from -180 to 180, and NaN to null', () => {
    const attitude = telemetry.ATTITUDE(state);
    expect(
      attitudeFeed({ ...attitude, roll: Math.PI / 2, pitch: Number.NaN, yaw: (3 * Math.PI) / 2 }),
    ).toEqual({
      roll: 90,
      pitch: null,
      yaw: -90,
    });
  });

  it('have no airspeed without a sensor', () => {
    const hud = telemetry.VFR_HUD(state);
    expect(vfrHudFeed({ ...hud, airspeed: Number.NaN, heading: 360 })).toMatchObject({
      airspeed: null,
      heading: 0,
    });
    expect(vfrHudFeed({ ...hud, heading: -1, throttle: 300 })).toMatchObject({
      heading: null,
      throttle_pct: null,
    });
  });

  it('keep the scale of the radio, and convert 255 to null', () => {
    const radio = { rssi: 190, remrssi: 255, noise: 40, remnoise: 38, rxerrors: 7, fixed: 0, txbuf: 100 };
    expect(radioFeed(radio)).toEqual({
      rssi: 190,
      remote_rssi: null,
      noise: 40,
      remote_noise: 38,
      rx_errors: 7,
    });
  });
});

describe('The estimator', () => {
  const flying = { armed: true, kind: 'copter' } as const;
  const report = telemetry.EKF_STATUS_REPORT(state);
  const status = telemetry.ESTIMATOR_STATUS({ ...state, autopilot: 'px4' });

  it.each([
    [831, true],
    [167, false],
    [0, false],
    [1024, false],
    [831 | 32_768, false],
  ])('of ArduPilot with flags %i is healthy: %s', (flags, ok) => {
    expect(ardupilotHealth({ ...report, flags }, flying)).toMatchObject({ ok });
  });

  it('of a disarmed ArduPilot needs only a predicted position', () => {
    expect(ardupilotHealth({ ...report, flags: 0x27 | 512 }, { ...flying, armed: false }).ok).toBe(true);
    expect(ardupilotHealth({ ...report, flags: 0x27 | 512 }, flying).ok).toBe(false);
  });

  it.each([
    [1_023, true],
    [895, true],
    [895 | 1_024, false],
    [895 | 2_048, false],
    [167, false],
  ])('of PX4 with flags %i is healthy: %s', (flags, ok) => {
    expect(px4Health({ ...status, flags }, 'copter')).toMatchObject({ ok });
  });

  // 165 and 421: EKF3 and EKF2 without a receiver (ArduPilot#16018).
  it.each([
    [165, true],
    [421, true],
    [165 & ~1, false],
    [165 & ~4, false],
    [165 & ~32, false],
    [1024, false],
  ])('of a submarine, which needs attitude and depth, with flags %i is healthy: %s', (flags, ok) => {
    expect(ardupilotHealth({ ...report, flags }, { armed: true, kind: 'sub' })).toMatchObject({
      ok,
      hasPosition: false,
    });
    expect(px4Health({ ...status, flags }, 'sub')).toMatchObject({ ok, hasPosition: false });
  });

  it('is unhealthy with a reason when its measurements contradict it', () => {
    expect(ardupilotHealth({ ...report, compass_variance: 0.9 }, flying)).toMatchObject({
      ok: false,
      reasons: ['compass variance'],
    });
    expect(px4Health({ ...status, mag_ratio: 1.2 }, 'copter')).toMatchObject({
      ok: false,
      reasons: ['compass innovation'],
    });
  });
});

describe('The pre-arm check', () => {
  const bit = 0x1000_0000;
  const status = (present: number, enabled: number, health: number) => ({
    ...telemetry.SYS_STATUS(state),
    onboard_control_sensors_present: present,
    onboard_control_sensors_enabled: enabled,
    onboard_control_sensors_health: health,
  });

  it('is read from the bit of health alone on PX4', () => {
    expect(preArmCheck('px4', status(0, 0, bit))).toBe(true);
    expect(preArmCheck('px4', status(0, 0, 0))).toBe(false);
  });

  it('is unknown on an ArduPilot with disabled checks', () => {
    expect(preArmCheck('ardupilot', status(bit, bit, bit))).toBe(true);
    expect(preArmCheck('ardupilot', status(bit, bit, 0))).toBe(false);
    expect(preArmCheck('ardupilot', status(bit, 0, bit))).toBeNull();
    expect(preArmCheck('ardupilot', status(0, 0, 0))).toBeNull();
  });
});

describe('Flight modes', () => {
  const shown = (custom_mode: number, base_mode = 1) => ({ base_mode, custom_mode });

  it('have a separate number for each kind of vehicle', () => {
    expect(modeNumbers('ardupilot', 'copter', 'LAND')?.main).toBe(9);
    expect(flightMode('ardupilot', 'rover', shown(9))).toBe('CIRCLE');
    expect(modeNumbers('ardupilot', 'rover', 'LAND')).toBeUndefined();
    expect(modeNumbers('ardupilot', 'plane', 'GUIDED')?.main).toBe(15);
    expect(modeNumbers('ardupilot', 'vtol', 'LAND')?.main).toBe(20);
    expect(modeNumbers('ardupilot', 'plane', 'LAND')).toBeUndefined();
    expect(modeNumbers('ardupilot', 'plane', 'LAND', new Map([[26, 'AUTOLAND']]))?.main).toBe(26);
    expect(modeNumbers('px4', 'copter', 'LAND')).toEqual({ main: 4, sub: 6, custom_mode: 0x06_04_00_00 });
    expect(modeNumbers('other', 'copter', 'LAND')).toBeUndefined();
  });

  it('have the name from the tables, else from the autopilot, else their number', () => {
    expect(flightMode('ardupilot', 'copter', shown(27))).toBe('AUTO_RTL');
    expect(flightMode('ardupilot', 'sub', shown(21))).toBe('SURFTRAK');
    expect(flightMode('ardupilot', 'copter', shown(99))).toBe('UNKNOWN(99)');
    expect(flightMode('ardupilot', 'copter', shown(8))).toBe('UNKNOWN(8)');
    const offered = new Map([
      [5, 'LOIT'],
      [99, 'Mower'],
      [0x0b_04_00_00, 'Orchard'],
    ]);
    expect(flightMode('ardupilot', 'copter', { ...shown(99), offered })).toBe('Mower');
    expect(flightMode('ardupilot', 'copter', { ...shown(5), offered })).toBe('LOITER');
    expect(flightMode('px4', 'copter', shown(0x0b_04_00_00))).toBe('EXTERNAL1');
    expect(flightMode('px4', 'copter', { ...shown(0x0b_04_00_00), offered })).toBe('Orchard');
    expect(flightMode('px4', 'copter', shown(0x04_04_00_00))).toBe('MISSION');
    expect(flightMode('px4', 'copter', shown(0x00_03_00_00))).toBe('POSCTL');
    expect(flightMode('ardupilot', 'copter', shown(4, 0))).toBeNull();
  });
});

describe('The sender of a heartbeat', () => {
  it('is classified by type and autopilot, since a gimbal sends heartbeats too', () => {
    expect(senderOf({ type: 2, autopilot: 3 }).is).toBe('autopilot');
    expect(senderOf({ type: 0, autopilot: 3 }).is).toBe('autopilot');
    expect(senderOf({ type: 6, autopilot: 8 }).is).toBe('station');
    expect(senderOf({ type: 26, autopilot: 8 })).toEqual({ is: 'part', part: 'gimbal', asset: 'sensor' });
    expect(senderOf({ type: 30, autopilot: 8 })).toMatchObject({ asset: 'camera' });
  });
});

describe('Status texts', () => {
  const chunk = (text: string, id = 0, chunk_seq = 0) => ({ severity: 2, text, id, chunk_seq });
  const head = 'Arming denied: Resolve system health failures firs';

  it('are joined from chunks, also with id 0, which PX4 uses first', () => {
    for (const id of [0, 5]) {
      const texts = new StatusTexts();
      expect(texts.receive(chunk(head, id), 0)).toBeUndefined();
      expect(texts.receive(chunk('t\t', id, 1), 10)?.text).toBe(
        'Arming denied: Resolve system health failures first',
      );
    }
  });

  it('are returned immediately when they are short', () => {
    expect(new StatusTexts().receive(chunk('PreArm: GPS 1: Bad fix'), 0)).toEqual({
      severity: 2,
      text: 'PreArm: GPS 1: Bad fix',
    });
  });

  it('are returned with a gap when a chunk is lost', () => {
    const texts = new StatusTexts();
    texts.receive(chunk(head, 7), 0);
    texts.receive(chunk('the end', 7, 2), 10);
    expect(texts.overdue(100)).toEqual([]);
    expect(texts.overdue(1_000)).toEqual([{ severity: 2, text: `${head} ... the end` }]);
  });

  it('are limited to eight incomplete ones', () => {
    const texts = new StatusTexts();
    const returned = Array.from({ length: 1_000 }, (_, id) => texts.receive(chunk(head, id + 1), 0));
    expect(returned.filter((text) => text !== undefined)).toHaveLength(992);
  });
});
