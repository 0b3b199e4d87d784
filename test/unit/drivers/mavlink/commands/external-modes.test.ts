/** Modes of PX4 that run on a companion computer (ROS 2): they come while it runs, and may replace its own (PX4-Autopilot#20707). */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { withDrone } from '../mavlink-lab.ts';

const external = (number: number): number => (((10 + number) << 24) | (4 << 16)) >>> 0;
const accepted = { result: 0 };
const px4 = { autopilot: 'px4', airborne: true } as const;

describe.concurrent('An external mode of PX4', () => {
  it.each([
    ['return_home', {}],
    ['set_mode', { mode: 'RTL' }],
    ['land', {}],
  ] as const)('that replaces the ordered one completes %s', async (name, payload) => {
    await withDrone(px4, async (lab, drone) => {
      drone.modes = [{ custom_mode: external(2), mode_name: 'Way home' }];
      drone.react = () => {
        drone.odd_mode = external(2);
        return accepted;
      };
      expect(await lab.command(name, payload)).toMatchObject({ acknowledged: true });
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'Way home');
    });
  });

  it('in which the vehicle was before shows no return', async () => {
    await withDrone(px4, async (lab, drone) => {
      drone.odd_mode = external(2);
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'EXTERNAL2');
      drone.react = () => accepted;
      await expect(lab.command('return_home')).rejects.toThrow(texts.expects_homeward);
    });
  });

  it('has the name under which it registered, also after the list was read', async () => {
    await withDrone(px4, async (lab, drone) => {
      const sweep = { custom_mode: external(1), mode_name: 'Sweep' };
      drone.modes = [sweep, { custom_mode: external(2), mode_name: '(Mode not available)' }];
      drone.odd_mode = external(1);
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'Sweep');
      drone.modes = [sweep, { custom_mode: external(2), mode_name: 'Way home' }];
      drone.odd_mode = external(2);
      await lab.sees('sys_status', ({ flight_mode }) => flight_mode === 'Way home');
      expect(drone.requests.filter((msgid) => msgid === 435)).toHaveLength(2);
    });
  });
});
