/** Preconditions of commands: pure decisions on the situation of a vehicle. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { heightOf } from '../../../../../drivers/mavlink/commands/altitude.ts';
import {
  admitTakeoff,
  admitTarget,
  obstacleToArm,
  obstacleToDisarm,
  obstacleToMode,
  obstacleToReturn,
} from '../../../../../drivers/mavlink/commands/gate.ts';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { mavlinkOptions } from '../../../../../drivers/mavlink/options.ts';
import type { Situation } from '../../../../../drivers/mavlink/vehicles/situation.ts';
import { forAll } from '../../../../support/for-all.ts';
import { situation } from './situation.ts';

const options = mavlinkOptions.parse({ links: [{ kind: 'udp_listen', port: 14_550 }] });
const home = { lat: 47, lon: 8, alt_amsl_m: 488 };
const flying = situation({
  armed: true,
  mode: 'GUIDED',
  airborne: true,
  position: { lat: 47, lon: 8, alt_amsl_m: 518 },
  home,
});
const target = { lat: 47.001, lon: 8, alt_m: 30 };
const limits = { min_m: 2, max_m: 120 };

describe('The precondition of goto_waypoint', () => {
  it('admits a target with both heights', () => {
    expect(admitTarget(target, flying, options.goto)).toEqual({ amsl_m: 518, above_home_m: 30 });
  });

  it.each<[string, Partial<Situation>, string]>([
    ['the vehicle is disarmed', { armed: false }, texts.not_armed],
    ['the vehicle stands on the ground', { airborne: false }, texts.not_airborne],
    ['it does not report whether it is airborne', { airborne: null }, texts.airborne_unknown],
    ['its state is unknown', { armed: null }, texts.heartbeat_missing],
    ['its position is stale', { position: undefined }, texts.position_missing],
    ['its home is unknown', { home: undefined }, texts.home_unknown],
    [
      'its estimator is unhealthy',
      { estimator: { ok: false, hasPosition: true, reasons: ['GPS glitch'] } },
      texts.estimator_unhealthy(['GPS glitch']),
    ],
    ['its autopilot is neither ArduPilot nor PX4', { autopilot: 'other' }, texts.autopilot_unsupported],
    ['it is a submarine', { kind: 'sub' }, texts.kind_unsupported('sub')],
  ])('refuses a target while %s', (_title, change, reason) => {
    expect(admitTarget(target, { ...flying, ...change }, options.goto)).toBe(reason);
  });

  it.each<[string, Partial<typeof target>, string]>([
    ['far away', { lat: 48 }, texts.target_far(111_195, 'the vehicle', 2_000)],
    ['below the ground', { alt_m: -50 }, texts.target_height(-50, 'alt_m -50 is relative', limits)],
    ['too low', { alt_m: 1.9 }, texts.target_height(1.9, 'alt_m 1.9 is relative', limits)],
    ['too high', { alt_m: 120.1 }, texts.target_height(120.1, 'alt_m 120.1 is relative', limits)],
  ])('refuses a target %s', (_title, change, reason) => {
    expect(admitTarget({ ...target, ...change }, flying, options.goto)).toBe(reason);
  });

  it('refuses latitude 0, longitude 0, even at sea off Africa', () => {
    const off_africa = { lat: 0.0001, lon: 0, alt_amsl_m: 30 };
    const there = { ...flying, position: off_africa, home: off_africa };
    expect(admitTarget({ ...target, lat: 0, lon: 0 }, there, options.goto)).toBe(texts.target_unset);
  });

  it('refuses a target outside the geofence', () => {
    const geofence = [
      { lat: 46.999, lon: 7.999 },
      { lat: 47.0005, lon: 7.999 },
      { lat: 47.0005, lon: 8.001 },
      { lat: 46.999, lon: 8.001 },
    ];
    expect(admitTarget(target, flying, { ...options.goto, geofence })).toBe(texts.target_outside);
    expect(admitTarget({ ...target, lat: 47.0001 }, flying, { ...options.goto, geofence })).toMatchObject({
      amsl_m: 518,
    });
  });

  it('refuses a target whose straight way leaves the geofence, unless the vehicle is outside of it', () => {
    // A U: two arms to the north, with a bay between them.
    const geofence = [
      { lat: 46.999, lon: 7.999 },
      { lat: 47.001, lon: 7.999 },
      { lat: 47.001, lon: 7.9995 },
      { lat: 46.9995, lon: 7.9995 },
      { lat: 46.9995, lon: 8.0005 },
      { lat: 47.001, lon: 8.0005 },
      { lat: 47.001, lon: 8.001 },
      { lat: 46.999, lon: 8.001 },
    ];
    const goto = { ...options.goto, geofence };
    const across = { lat: 47, lon: 8.0007, alt_m: 30 };
    const at = (lon: number) => ({ ...flying, position: { lat: 47, lon, alt_amsl_m: 518 } });
    expect(admitTarget(across, at(7.9993), goto)).toBe(texts.way_outside);
    expect(admitTarget(across, at(8.0006), goto)).toMatchObject({ amsl_m: 518 });
    expect(admitTarget(across, at(8), goto)).toMatchObject({ amsl_m: 518 });
  });

  it('ignores the height for rovers', () => {
    const rover = { ...flying, kind: 'rover', airborne: false } as const;
    expect(admitTarget({ ...target, alt_m: 0 }, rover, options.goto)).toEqual({
      amsl_m: 518,
      above_home_m: 0,
    });
  });

  it('never admits a height above home outside the limits, whatever the datum', () => {
    forAll(
      fc.constantFrom('relative', 'amsl', 'ellipsoid'),
      fc.double({ min: -1e4, max: 1e4, noNaN: true }),
      fc.double({ min: -100, max: 100, noNaN: true }),
      (datum, alt_m, undulation_m) => {
        const admitted = admitTarget(
          { ...target, alt_m },
          { ...flying, undulation_m },
          { ...options.goto, datum },
        );
        if (typeof admitted === 'string') return;
        expect(admitted.above_home_m).toBeGreaterThanOrEqual(2);
        expect(admitted.above_home_m).toBeLessThanOrEqual(120);
        expect(admitted.amsl_m - admitted.above_home_m).toBeCloseTo(488, 2);
      },
    );
  });
});

describe('The datum of alt_m', () => {
  it('is converted to heights above sea level and home', () => {
    expect(heightOf(30, 'relative', flying)).toEqual({ amsl_m: 518, above_home_m: 30 });
    expect(heightOf(518, 'amsl', flying)).toEqual({ amsl_m: 518, above_home_m: 30 });
    expect(heightOf(565, 'ellipsoid', flying)).toEqual({ amsl_m: 518, above_home_m: 30 });
  });

  it('is not guessed when the receiver does not report the ellipsoid', () => {
    expect(heightOf(565, 'ellipsoid', { ...flying, undulation_m: undefined })).toBe(texts.ellipsoid_unknown);
  });
});

describe('The height of a takeoff', () => {
  it('is above home and above where the vehicle stands', () => {
    const at = (alt_amsl_m: number) => ({ ...flying, airborne: false, position: { ...home, alt_amsl_m } });
    expect(admitTakeoff(10, at(489))).toEqual({ amsl_m: 498, above_home_m: 10 });
    expect(admitTakeoff(10, at(500))).toBe(texts.takeoff_below(10, 12));
  });
});

describe('The preconditions of the other commands', () => {
  it('refuse to arm while the checks fail, with the reasons, unless the configuration allows it', () => {
    const failing = { ...flying, armed: false, pre_arm_check: false, pre_arm_reasons: ['PreArm: Compass'] };
    expect(obstacleToArm(failing, options.arm)).toBe(texts.pre_arm_failed(['PreArm: Compass']));
    expect(obstacleToArm(failing, { ...options.arm, require_pre_arm_check: false })).toBeUndefined();
  });

  it('refuse to arm without a position, unless the configuration allows it', () => {
    const indoors = { ...flying, armed: false, position: undefined };
    expect(obstacleToArm(indoors, options.arm)).toBe(texts.position_missing);
    expect(obstacleToArm(indoors, { ...options.arm, require_position: false })).toBeUndefined();
  });

  it('refuse to disarm an airborne vehicle', () => {
    expect(obstacleToDisarm(flying)).toBe(texts.airborne);
    expect(obstacleToDisarm({ ...flying, airborne: false })).toBeUndefined();
  });

  it('refuse modes that would prevent the arming of a vehicle on the ground', () => {
    const parked = { ...flying, armed: false };
    expect(obstacleToReturn(parked)).toBe(texts.disarmed_mode);
    expect(obstacleToMode(parked, 'LAND')).toBe(texts.disarmed_mode);
    expect(obstacleToMode(parked, 'GUIDED')).toBeUndefined();
  });

  it('refuse modes that the vehicle does not have', () => {
    expect(obstacleToMode({ ...flying, kind: 'rover' }, 'LAND')).toMatch(/has no mode LAND/u);
    expect(obstacleToMode({ ...flying, kind: 'sub' }, 'RTL')).toMatch(/has no mode RTL/u);
    expect(obstacleToMode({ ...flying, kind: 'plane' }, 'LAND')).toMatch(/has no mode LAND/u);
    expect(obstacleToMode({ ...flying, kind: 'vtol' }, 'LAND')).toBeUndefined();
  });
});
