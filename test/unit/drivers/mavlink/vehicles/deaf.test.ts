/**
 * A vehicle that is received and receives nothing: an ArduPilot that accepts its ground station only (SYSID_ENFORCE), or a router,
 * radio or firewall that carries one direction (QGroundControl#10682, BlueOS#2688). It looks well until a command is needed.
 */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/vehicles/texts.ts';
import { eventually } from '../../../../support/eventually.ts';
import { sleep } from '../../../../../src/platform/time.ts';
import { drone_key, withLab } from '../mavlink-lab.ts';

function isAlarmed({ alarms }: { readonly alarms?: unknown }): boolean {
  return JSON.stringify(alarms ?? '').includes(texts.deaf);
}

describe.concurrent.each(['ardupilot', 'px4'] as const)(
  'A vehicle that answers nothing (%s)',
  (autopilot) => {
    it('has an alarm until it answers, and commands that fail name it', async () => {
      await withLab(async (lab) => {
        const drone = await lab.fly({ autopilot, airborne: true });
        await lab.sees('gps');
        drone.deaf = true;
        await lab.sees('sys_status', isAlarmed);
        await eventually('it is logged', () => lab.log.at('warn').includes(texts.deaf));
        await expect(lab.command('return_home')).rejects.toThrow(texts.deaf);
        drone.deaf = false;
        lab.outbox.clear();
        await lab.sees('sys_status', (status) => !isAlarmed(status));
        expect(await lab.command('return_home')).toMatchObject({ acknowledged: true });
        expect(lab.log.at('warn').filter((line) => line === texts.deaf)).toHaveLength(1);
      });
    });

    it('has it also where it has never answered', async () => {
      await withLab(async (lab) => {
        const drone = await lab.fly({ autopilot, airborne: true });
        drone.deaf = true;
        expect(await lab.sees('sys_status', isAlarmed, 'mavlink:system-1')).toMatchObject({ armed: true });
      });
    });
  },
);

// RosettaDrone, by which DJI's drones send MAVLink, announces an ArduPilot.
it('A bridge that knows the older request for its identity alone, and answers with no COMMAND_ACK, is no such vehicle', async () => {
  await withLab(async (lab) => {
    const drone = await lab.fly({ airborne: true });
    drone.streams_only = true;
    drone.withheld.add('COMMAND_ACK');
    await lab.sees('gps', () => true, drone_key);
    await sleep(70_000, new AbortController().signal);
    lab.outbox.clear();
    expect(await lab.sees('sys_status')).not.toHaveProperty('alarms');
    expect(lab.log.at('warn')).not.toContain(texts.deaf);
  });
});
