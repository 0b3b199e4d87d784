/** What is refused before anything is sent: pure decisions on what is known of a vehicle. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { heightOf } from '../../../../drivers/mavlink/altitude.ts';
import {
  admitTarget,
  obstacleToArm,
  obstacleToDisarm,
  obstacleToMode,
  obstacleToReturn,
} from '../../../../drivers/mavlink/gate.ts';
import { mavlinkOptions } from '../../../../drivers/mavlink/options.ts';
import type { Situation } from '../../../../drivers/mavlink/situation.ts';

const options = mavlinkOptions.parse({ links: [{ kind: 'udp_listen', port: 14_550 }] });
const home = { lat: 47, lon: 8, alt_amsl_m: 488 };
const flying: Situation = {
  autopilot: 'ardupilot',
  kind: 'copter',
  armed: true,
  mode: 'GUIDED',
  modes: new Map(),
  airborne: true,
  position: { lat: 47, lon: 8, alt_amsl_m: 518 },
  home,
  undulation_m: 47,
  estimator: { ok: true, has_position: true, reasons: [] },
  pre_arm_check: true,
  pre_arm_reasons: [],
};
const target = { lat: 47.001, lon: 8, alt_m: 30 };

describe('goto_waypoint', () => {
  it('is admitted with both heights', () => {
    expect(admitTarget(target, flying, options.goto)).toEqual({ amsl_m: 518, above_home_m: 30 });
  });

  it.each<[string, Partial<Situation>, RegExp]>([
    ['the vehicle is disarmed', { armed: false }, /not armed/u],
    ['the vehicle stands on the ground', { airborne: false }, /not in the air/u],
    ['nobody knows whether it flies', { airborne: null }, /not known to be in the air/u],
    ['its state is not known', { armed: null }, /no heartbeat/u],
    ['its position is stale', { position: undefined }, /no valid, fresh position/u],
    ['its home is not known', { home: undefined }, /home position is not known/u],
    [
      'its estimator is ill',
      { estimator: { ok: false, has_position: true, reasons: ['GPS glitch'] } },
      /GPS glitch/u,
    ],
    ['its autopilot reads altitudes in its own way', { autopilot: 'other' }, /only known to be safe/u],
    ['it dives', { kind: 'sub' }, /not known to be safe/u],
  ])('is refused while %s', (_title, change, sentence) => {
    expect(admitTarget(target, { ...flying, ...change }, options.goto)).toMatch(sentence);
  });

  it.each<[string, Partial<typeof target>, RegExp]>([
    ['far away', { lat: 48 }, /111195 m from the vehicle, and 2000 m are allowed/u],
    ['below the ground', { alt_m: -50 }, /-50 m above home/u],
    ['too low', { alt_m: 1.9 }, /2 to 120 m are allowed/u],
    ['too high', { alt_m: 120.1 }, /2 to 120 m are allowed/u],
  ])('is refused for a target %s', (_title, change, sentence) => {
    expect(admitTarget({ ...target, ...change }, flying, options.goto)).toMatch(sentence);
  });

  it('is refused for latitude 0, longitude 0, even at sea off Africa', () => {
    const off_africa = { lat: 0.0001, lon: 0, alt_amsl_m: 30 };
    const there = { ...flying, position: off_africa, home: off_africa };
    expect(admitTarget({ ...target, lat: 0, lon: 0 }, there, options.goto)).toMatch(/no target/u);
  });

  it('is refused outside the geofence', () => {
    const geofence = [
      { lat: 46.999, lon: 7.999 },
      { lat: 47.0005, lon: 7.999 },
      { lat: 47.0005, lon: 8.001 },
      { lat: 46.999, lon: 8.001 },
    ];
    expect(admitTarget(target, flying, { ...options.goto, geofence })).toMatch(/outside the geofence/u);
    expect(admitTarget({ ...target, lat: 47.0001 }, flying, { ...options.goto, geofence })).toMatchObject({
      amsl_m: 518,
    });
  });

  it('counts no height for what drives', () => {
    const rover = { ...flying, kind: 'rover', airborne: false } as const;
    expect(admitTarget({ ...target, alt_m: 0 }, rover, options.goto)).toEqual({
      amsl_m: 488,
      above_home_m: 0,
    });
  });

  it('never admits a height above home outside the limits, whatever the datum', () => {
    fc.assert(
      fc.property(
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
      ),
    );
  });
});

describe('the datum of alt_m', () => {
  it('is resolved to the sea level and to home', () => {
    expect(heightOf(30, 'relative', flying)).toEqual({ amsl_m: 518, above_home_m: 30 });
    expect(heightOf(518, 'amsl', flying)).toEqual({ amsl_m: 518, above_home_m: 30 });
    expect(heightOf(565, 'ellipsoid', flying)).toEqual({ amsl_m: 518, above_home_m: 30 });
  });

  it('is not guessed when the ellipsoid is not known here', () => {
    expect(heightOf(565, 'ellipsoid', { ...flying, undulation_m: undefined })).toMatch(
      /does not tell the ellipsoid/u,
    );
  });
});

describe('the other commands', () => {
  it('refuse to arm while the checks fail, with the reasons, unless the configuration allows it', () => {
    const failing = { ...flying, armed: false, pre_arm_check: false, pre_arm_reasons: ['PreArm: Compass'] };
    expect(obstacleToArm(failing, options.arm)).toBe('its own checks before arming fail: PreArm: Compass');
    expect(obstacleToArm(failing, { ...options.arm, require_pre_arm_check: false })).toBeUndefined();
  });

  it('refuse to arm without a position, unless the configuration allows it', () => {
    const indoors = { ...flying, armed: false, position: undefined };
    expect(obstacleToArm(indoors, options.arm)).toMatch(/no valid, fresh position/u);
    expect(obstacleToArm(indoors, { ...options.arm, require_position: false })).toBeUndefined();
  });

  it('refuse to disarm in the air', () => {
    expect(obstacleToDisarm(flying)).toMatch(/in the air/u);
    expect(obstacleToDisarm({ ...flying, airborne: false })).toBeUndefined();
  });

  it('refuse modes that would only keep a vehicle on the ground from being armed', () => {
    const parked = { ...flying, armed: false };
    expect(obstacleToReturn(parked)).toMatch(/disarmed/u);
    expect(obstacleToMode(parked, 'LAND')).toMatch(/disarmed/u);
    expect(obstacleToMode(parked, 'GUIDED')).toBeUndefined();
  });

  it('refuse modes that the vehicle does not have', () => {
    expect(obstacleToMode({ ...flying, kind: 'rover' }, 'LAND')).toMatch(/has no mode LAND/u);
    expect(obstacleToMode({ ...flying, kind: 'sub' }, 'RTL')).toMatch(/has no mode RTL/u);
    expect(obstacleToMode({ ...flying, kind: 'plane' }, 'LAND')).toMatch(/has no mode LAND/u);
    expect(obstacleToMode({ ...flying, kind: 'vtol' }, 'LAND')).toBeUndefined();
  });
});
