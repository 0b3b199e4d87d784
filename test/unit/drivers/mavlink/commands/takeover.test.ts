/** A pilot who takes over while a command is being executed: it is not reported as done, and nothing more is sent. */
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../../../src/contract/json.ts';
import { MissionDrone, missionItem } from '../../../../fakes/mission-drone.ts';
import { autopilots, payloadOf } from './commands-lab.ts';
import { withLab } from '../mavlink-lab.ts';

/** Modes in which the pilot flies: POSHOLD, and POSCTL. */
const manual_modes = { ardupilot: 16, px4: 3 << 16 } as const;
const not_done = /outcome unknown$/u;

const moving = [
  { name: 'arm', on_ground: true },
  { name: 'takeoff', on_ground: true },
  { name: 'goto_waypoint' },
  { name: 'set_altitude' },
  { name: 'set_mode' },
  { name: 'return_home' },
  { name: 'start_mission' },
  { name: 'resume_mission' },
] as const;

/** What takes longer than the pilot's mode needs to arrive, also on a busy machine. */
const more: Partial<Record<string, JsonObject>> = {
  goto_waypoint: { wait_for_arrival: true },
  takeoff: { height_m: 60 },
};

describe.concurrent.each(autopilots)('A pilot of %s who takes over', (autopilot) => {
  it.each(moving)(
    'when $name is accepted is not overruled, and it is not done',
    async ({ name, ...about }) => {
      await withLab(async (lab) => {
        const on_ground = 'on_ground' in about;
        const drone = new MissionDrone({ port: lab.port, autopilot, airborne: !on_ground });
        await drone.start();
        try {
          const isMission = name.endsWith('_mission');
          if (isMission) drone.mission = Array.from({ length: 4 }, (_, seq) => missionItem(seq));
          drone.flight.armed = name !== 'arm';
          if (name === 'takeoff') drone.flight.mode = 'GUIDED';
          if (isMission) drone.flight.mode = 'LOITER';
          await lab.sees('gps', ({ alt_m, relative_alt_m }) => alt_m !== null && relative_alt_m !== null);
          await lab.sees('home');
          await lab.sees('mission');
          await lab.sees('sys_status', ({ ekf_ok, pre_arm_check, armed, flight_mode }) => {
            const isReady = !isMission || flight_mode === 'LOITER';
            return ekf_ok !== null && pre_arm_check !== null && isReady && armed === drone.flight.armed;
          });
          drone.react = (_fields, execute) => {
            const answer = execute();
            drone.odd_mode = manual_modes[autopilot];
            if (name === 'arm') drone.flight.armed = false;
            return answer;
          };
          await expect(
            lab.command(name, { ...payloadOf(name), ...more[name] }, { remaining_ms: 30_000 }),
          ).rejects.toThrow(not_done);
          expect(drone.commands).toHaveLength(1);
        } finally {
          drone.stop();
        }
      });
    },
  );
});
