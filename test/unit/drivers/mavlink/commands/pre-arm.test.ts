/** The reasons of an ArduPilot that does not arm, which it sends every 30 s only. */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { withDrone } from '../mavlink-lab.ts';

const command_arm = 400;
const command_run_checks = 401;

describe.concurrent('arm of an ArduPilot whose checks fail without a reason', () => {
  it('lets it run its checks, and names all of its reasons', async () => {
    await withDrone({}, async (lab, drone) => {
      drone.pre_arm_ok = false;
      drone.gps = 'ok';
      await lab.sees('sys_status', ({ pre_arm_check }) => pre_arm_check === false);
      await expect(lab.command('arm')).rejects.toThrow(
        texts.pre_arm_failed(['PreArm: Compass not calibrated']),
      );
      expect(drone.commands.map(({ command }) => command)).toEqual([command_run_checks]);
      // Known now, they are not requested again.
      await expect(lab.command('arm')).rejects.toThrow('PreArm: Compass not calibrated');
      expect(drone.commands).toHaveLength(1);
    });
  });

  it('arms it when the failure was that of an earlier mode', async () => {
    await withDrone({}, async (lab, drone) => {
      drone.pre_arm_ok = false;
      await lab.sees('sys_status', ({ pre_arm_check }) => pre_arm_check === false);
      drone.pre_arm_ok = true;
      expect(await lab.command('arm')).toMatchObject({ armed: true, acknowledged: true });
      expect(drone.commands.map(({ command }) => command)).toEqual([command_run_checks, command_arm]);
    });
  });

  it('refuses without a reason when it does not answer', async () => {
    await withDrone({}, async (lab, drone) => {
      drone.pre_arm_ok = false;
      await lab.sees('sys_status', ({ pre_arm_check }) => pre_arm_check === false);
      drone.react = () => undefined;
      await expect(lab.command('arm')).rejects.toThrow(texts.pre_arm_failed([]));
      expect(drone.commands.some(({ command }) => command === command_arm)).toBe(false);
    });
  });
});
