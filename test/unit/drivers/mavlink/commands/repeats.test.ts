/** Commands that may be sent again: only while the vehicle is as it was when the first copy was sent. */
import { describe, expect, it } from 'vitest';
import { autopilotVersion } from '../../../../../drivers/mavlink/sim/telemetry.ts';
import { texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { withDrone } from '../mavlink-lab.ts';

const arm = 400;
const return_home = 20;
const [loiter, rtl] = [5, 6];
const unanswered = /outcome unknown$/u;

/** Shows its state at once, without waiting for the next heartbeat. */
function beat(drone: FakeDrone, { custom_mode, armed }: { custom_mode: number; armed: boolean }): void {
  const about = { type: 2, autopilot: 3, system_status: 4, mavlink_version: 3 };
  drone.send('HEARTBEAT', { ...about, base_mode: armed ? 1 | 128 : 1, custom_mode });
}

function showAirborne(drone: FakeDrone): void {
  drone.send('EXTENDED_SYS_STATE', { vtol_state: 0, landed_state: 2 });
}

describe.concurrent('A command without an answer is not sent again', () => {
  it('as disarm to a vehicle that has taken off meanwhile', async () => {
    await withDrone({}, async (lab, drone) => {
      drone.flight.armed = true;
      await lab.sees('sys_status', ({ armed }) => armed === true);
      drone.react = () => {
        drone.flight.height_m = 20;
        showAirborne(drone);
        return undefined;
      };
      await expect(lab.command('disarm')).rejects.toThrow(unanswered);
      expect(drone.commands.map(({ command }) => command)).toEqual([arm]);
    });
  });

  it('as return_home to a vehicle that was disarmed meanwhile', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = () => {
        drone.flight.armed = false;
        beat(drone, { custom_mode: 3, armed: false });
        return undefined;
      };
      await expect(lab.command('return_home')).rejects.toThrow(unanswered);
      expect(drone.commands.map(({ command }) => command)).toEqual([return_home]);
    });
  });

  it('to a vehicle whose mode a pilot has changed meanwhile', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = () => {
        drone.flight.mode = 'LOITER';
        beat(drone, { custom_mode: loiter, armed: true });
        return undefined;
      };
      await expect(lab.command('return_home')).rejects.toThrow(unanswered);
      expect(drone.commands).toHaveLength(1);
    });
  });

  it('in the last second of its time', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = () => undefined;
      await expect(lab.command('return_home', {}, { remaining_ms: 1_500 })).rejects.toThrow(unanswered);
      expect(drone.commands).toHaveLength(1);
    });
  });
});

it('The effect of another vehicle that is found behind the same radio does not complete a command', async () => {
  await withDrone({ airborne: true }, async (lab, drone) => {
    drone.react = () => {
      for (const uid of ['00000000c0ffee02', drone.uid, '00000000c0ffee02'])
        drone.send('AUTOPILOT_VERSION', autopilotVersion(uid));
      beat(drone, { custom_mode: rtl, armed: true });
      return undefined;
    };
    const failed = lab.command('return_home');
    await expect(failed).rejects.toThrow(`${texts.id_shared(1)}; outcome unknown`);
  });
});

describe.concurrent('A command without an answer is sent again', () => {
  it('when the mode is the effect of the command that it has pre-empted', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = (_command, execute) => execute();
      const first = lab.command('set_mode', { mode: 'LOITER' });
      await drone.next(176);
      drone.react = (_command, execute) => {
        const copies = drone.commands.filter(({ command }) => command === return_home);
        if (copies.length > 1) return execute();
        beat(drone, { custom_mode: loiter, armed: true });
        return undefined;
      };
      expect(await lab.command('return_home')).toMatchObject({ flight_mode: 'RTL' });
      await first.catch(() => undefined);
      expect(drone.commands.map(({ command }) => command)).toEqual([176, return_home, return_home]);
    });
  });
});
