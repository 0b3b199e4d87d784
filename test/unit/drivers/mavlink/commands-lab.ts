/** Every command with both autopilots, for the tests of commands. */
import type { FakeDrone } from '../../../fakes/fake-drone.ts';
import { field } from '../../../fakes/fake-drone.ts';
import type { MavlinkLab } from './mavlink-lab.ts';

export const autopilots = ['ardupilot', 'px4'] as const;

export const near = { lat: field.lat + 0.001, lon: field.lon, alt_m: 30 };
const params: Readonly<Record<string, Record<string, unknown>>> = {
  set_mode: { mode: 'LOITER' },
  goto_waypoint: near,
};
/** What moves a vehicle that is in the air; `arm` and `disarm` are for one on the ground. */
const in_the_air = ['return_home', 'set_mode', 'goto_waypoint'] as const;
const on_the_ground = ['arm', 'disarm'] as const;
export const all = autopilots.flatMap((autopilot) => [
  ...on_the_ground.map((name) => ({ name, autopilot, airborne: false })),
  ...in_the_air.map((name) => ({ name, autopilot, airborne: true })),
]);
export const payloadOf = (name: string) => params[name] as Parameters<MavlinkLab['command']>[1];

/** A disarmed vehicle shows nothing new when it is disarmed. */
export const prepare = (drone: FakeDrone, name: string): void => {
  if (name === 'disarm') drone.flight.armed = true;
};
