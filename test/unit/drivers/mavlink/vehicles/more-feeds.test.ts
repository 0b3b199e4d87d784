/** The feeds home, wind, vibration and fence: units, directions, and every value that means "unknown". */
import { describe, expect, it } from 'vitest';
import {
  fenceFeed,
  homeFeed,
  clearanceFeed,
  failedSensors,
  rcFeed,
  terrainFeed,
  vibrationFeed,
  windFeed,
  windVectorFeed,
} from '../../../../../drivers/mavlink/vehicles/feeds.ts';
import { blank } from '../../../../../drivers/mavlink/wire/messages.ts';
import { field } from '../../../../fakes/fake-drone.ts';
import { eventually } from '../../../../support/eventually.ts';
import { publishedBy } from '../../../../support/drivers/unknown-values.ts';
import { drone_key, withDrone, withLab } from '../mavlink-lab.ts';
import { channels } from '../../../../../src/contract/topics.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';

describe('The wind feed', () => {
  it('has the direction that the wind comes from, from both autopilots', () => {
    expect(windFeed({ speed: 5, direction: -90, speed_z: 0 })).toEqual({ speed_mps: 5, direction: 270 });
    // Air that moves east comes from the west.
    expect(windVectorFeed({ ...blank('WIND_COV'), wind_y: 5 })).toEqual({
      speed_mps: 5,
      direction: 270,
    });
  });

  it('is not published without an estimate', () => {
    for (const direction of [0, -180, 180])
      expect(windFeed({ speed: 0, direction, speed_z: 0 })).toBeUndefined();
    expect(windVectorFeed({ ...blank('WIND_COV'), wind_x: Number.NaN })).toBeUndefined();
  });
});

describe('The other feeds', () => {
  // RSSI in percent by PX4 (input_rc), to 254 by ArduPilot (mLRS-docu#222), 255: unknown.
  it.each([
    ['px4', 80, 8, 80],
    ['ardupilot', 203, 8, 80],
    ['ardupilot', 255, 8, null],
    // Without RSSI_TYPE, its default, and without a signal (mavlink#1027).
    ['ardupilot', 0, 8, null],
    ['px4', 0, 8, 0],
    ['px4', 0, 0, null],
  ] as const)(
    'have the transmitter of a %s: %i with %i channels is %s %%',
    (by, rssi, chancount, rssi_pct) => {
      expect(rcFeed({ rssi, chancount }, by)).toEqual({ rssi_pct, channels: chancount });
    },
  );

  it('have the ground below, where the vehicle knows it', () => {
    const ground = { spacing: 100, terrain_height: 488, current_height: 40, loaded: 504 };
    const report = { ...blank('TERRAIN_REPORT'), ...ground };
    expect(terrainFeed(report)).toEqual({ above_terrain_m: 40, terrain_alt_amsl_m: 488 });
    expect(terrainFeed({ ...report, spacing: 0 })).toBeUndefined();
    const altitude = { ...blank('ALTITUDE'), altitude_amsl: 500, bottom_clearance: 12 };
    expect(clearanceFeed(altitude)).toEqual({ above_terrain_m: 12, terrain_alt_amsl_m: 488 });
    expect(clearanceFeed({ ...altitude, bottom_clearance: -1 })).toBeUndefined();
  });

  it('have the time in the air from a take-off that was seen', async () => {
    await withDrone({}, async (lab, drone) => {
      expect(await lab.sees('sys_status')).not.toHaveProperty('flight_time_s');
      drone.flight.believes_airborne = true;
      await lab.sees('sys_status', ({ flight_time_s }) => flight_time_s === 0);
    });
  });

  it.each([
    { what: 'since its take-off', takeoff_s: 60, seconds: 40 },
    { what: 'not, where that is unknown', takeoff_s: 0, seconds: undefined },
    { what: 'not, where the time is that of the day', takeoff_s: 1.8e9, seconds: undefined },
  ])('have the time in the air of a vehicle that flies already, $what', async ({ takeoff_s, seconds }) => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ airborne: true, uptime_ms: 100_000 });
      drone.takeoff_s = takeoff_s;
      await eventually('it is asked', () => drone.requests.includes(264));
      lab.outbox.clear();
      const { flight_time_s } = await lab.sees('sys_status');
      const isRight =
        seconds === undefined
          ? flight_time_s === undefined
          : Number(flight_time_s) >= seconds && Number(flight_time_s) < seconds + 30;
      expect(isRight).toBe(true);
    });
  });

  it('of a receiver put a vehicle without an estimate on the map (QGroundControl#5192)', () => {
    expect(publishedBy('px4', 'GPS_RAW_INT').get('asset.lat')).toBeCloseTo(field.lat, 6);
  });

  it('name the sensors that are there, in use, and do not work', () => {
    const bits = {
      onboard_control_sensors_present: 0x0021_002f,
      onboard_control_sensors_enabled: 0x1021_000f,
      onboard_control_sensors_health: 0x2b,
    };
    expect(failedSensors({ ...blank('SYS_STATUS'), ...bits })).toEqual(['compass', 'rc_receiver', 'ahrs']);
  });

  it('have the fence with the kind of its breach', () => {
    const status = { ...blank('FENCE_STATUS'), breach_count: 2, breach_status: 1, breach_type: 3 };
    expect(fenceFeed(status)).toEqual({ breached: true, breach_count: 2, breach_type: 'boundary' });
    expect(fenceFeed({ ...status, breach_type: 9 })).toMatchObject({ breach_type: null });
  });

  it('have the vibration by axis', () => {
    const report = { vibration_x: 12.5, vibration_y: Number.NaN, vibration_z: 3, clipping_0: 7 };
    expect(vibrationFeed({ ...blank('VIBRATION'), ...report })).toEqual({
      x: 12.5,
      y: null,
      z: 3,
      clipping: [7, 0, 0],
    });
  });

  it('have no home while it is not set', () => {
    expect(homeFeed({ ...blank('HOME_POSITION'), q: [1, 0, 0, 0] }, undefined)).toBeUndefined();
  });

  it('are published with what the vehicle sends', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly();
      await lab.until('online');
      const home = await lab.sees('home');
      expect(home).toMatchObject({ lat: field.lat, lon: field.lon, alt_amsl_m: field.alt_amsl_m });
      expect(await lab.sees('wind')).toEqual({ speed_mps: 3, direction: 240 });
      expect(await lab.sees('vibration')).toMatchObject({ x: 0.1, clipping: [0, 0, 0] });
      expect(drone.requests).toEqual(expect.arrayContaining([168, 162, 241]));
      expect(lab.outbox.on(channels.feed(assetId(kit_id, drone_key), 'fence'))).toEqual([]);
    });
  });
});
