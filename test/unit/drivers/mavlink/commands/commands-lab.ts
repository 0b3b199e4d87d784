/** Every command with both autopilots, for the tests of commands. */
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { field } from '../../../../fakes/fake-drone.ts';
import { type MavlinkLab, withDrone } from '../mavlink-lab.ts';
import { planFile, waypoint } from '../missions/mission-lab.ts';

export const autopilots = ['ardupilot', 'px4'] as const;

export const near = { lat: field.lat + 0.001, lon: field.lon, alt_m: 30 };
const plan = planFile([waypoint(11, 0), waypoint(22, 0)]);
const params: Readonly<Record<string, Record<string, unknown>>> = {
  set_mode: { mode: 'LOITER' },
  goto_waypoint: near,
  takeoff: { height_m: 5 },
  set_altitude: { alt_m: 30 },
  set_speed: { speed_mps: 5 },
  upload_mission: { plan },
  orbit: { ...near, radius_m: 40 },
  set_heading: { heading_deg: 200 },
  get_params: { names: ['RTL_ALT'] },
};
/** What moves a vehicle that is in the air; `arm` and `disarm` are for one on the ground. */
const in_the_air = ['return_home', 'set_mode', 'goto_waypoint'] as const;
const on_the_ground = ['arm', 'disarm'] as const;
export const each_command = [
  ...on_the_ground.map((name) => ({ name, airborne: false })),
  ...in_the_air.map((name) => ({ name, airborne: true })),
];
export const all = autopilots.flatMap((autopilot) => each_command.map((about) => ({ ...about, autopilot })));
export const payloadOf = (name: string) => params[name] as Parameters<MavlinkLab['command']>[1];

/** A disarmed vehicle shows nothing new when it is disarmed. */
export const prepare = (drone: FakeDrone, name: string): void => {
  if (name === 'disarm') drone.flight.armed = true;
};

/** Runs `fn` with a drone of each autopilot, side by side: what is waited for is waited for once. */
export async function withBoth(
  about: { readonly airborne: boolean; readonly uptime_ms?: number },
  fn: (lab: MavlinkLab, drone: FakeDrone) => Promise<void>,
): Promise<void> {
  await Promise.all(autopilots.map(async (autopilot) => withDrone({ ...about, autopilot }, fn)));
}
