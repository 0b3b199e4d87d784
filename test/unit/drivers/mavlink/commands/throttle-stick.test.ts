/**
 * An ArduCopter in LOITER follows the pilot's throttle stick, as far as the ground when it is down (dronekit-python#848,
 * ArduPilot#4344, ArduPilot#29458): the simulated one does so too.
 */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { eventually } from '../../../../support/eventually.ts';
import { drone_key, withDrone } from '../mavlink-lab.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';

const set_mode = 176;

function hover(drone: FakeDrone): number {
  drone.flight.mode = 'GUIDED';
  drone.flight.target = undefined;
  return drone.flight.height_m;
}

describe.concurrent('set_mode LOITER of a flying ArduCopter', () => {
  it('is refused while the throttle stick is down, and hold keeps its height', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.throttle_us = 1_000;
      const height_m = hover(drone);
      await expect(lab.command('set_mode', { mode: 'LOITER' })).rejects.toThrow(texts.stick_down(3, 1_000));
      expect(drone.commands).toEqual([]);
      expect(await lab.command('hold')).toEqual({ flight_mode: 'BRAKE', acknowledged: true });
      expect(drone.flight.height_m).toBe(height_m);
    });
  });

  it('is refused by the stick that the parameters of the vehicle name', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.parameters.stored.set('RCMAP_THROTTLE', { value: 1, isInteger: true });
      drone.throttle_us = 1_000;
      expect(await lab.command('set_mode', { mode: 'LOITER' })).toMatchObject({
        warning: texts.stick_leads(1, 1_500),
      });
    });
  });

  it('is sent once and completed with a warning while the stick is in its middle', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      expect(await lab.command('set_mode', { mode: 'LOITER' })).toEqual({
        flight_mode: 'LOITER',
        acknowledged: true,
        warning: texts.stick_leads(3, 1_500),
      });
      // What the warning says.
      const { height_m } = drone.flight;
      drone.throttle_us = 1_000;
      await eventually('it sinks', () => drone.flight.height_m < height_m - 1);
    });
  });

  it('is completed with a warning without a transmitter, and where the vehicle reports no stick', async () => {
    await Promise.all([
      withDrone({ airborne: true }, async (lab, drone) => {
        drone.throttle_us = undefined;
        expect(await lab.command('set_mode', { mode: 'LOITER' })).toMatchObject({
          warning: texts.no_transmitter,
        });
      }),
      withDrone({ airborne: true }, async (lab, drone) => {
        drone.withheld.add('RC_CHANNELS');
        expect(await lab.command('set_mode', { mode: 'LOITER' })).toMatchObject({
          warning: texts.stick_unknown,
        });
        expect(drone.commands.map(({ command }) => command)).toEqual([set_mode]);
      }),
    ]);
  });

  it('asks for no stick on other vehicles, on the ground, and for other modes', async () => {
    const cases = [
      { about: { airborne: true, type: 1 }, mode: 'LOITER' },
      { about: { airborne: true, autopilot: 'px4' }, mode: 'LOITER' },
      { about: { airborne: false }, mode: 'LOITER' },
      { about: { airborne: true }, mode: 'GUIDED' },
    ] as const;
    await Promise.all(
      cases.map(async ({ about, mode }) =>
        withDrone(about, async (lab, drone) => {
          drone.throttle_us = 1_000;
          expect(await lab.command('set_mode', { mode })).not.toHaveProperty('warning');
          // Once for the feed.
          expect(drone.requests.filter((id) => id === 65).length).toBeLessThanOrEqual(1);
        }),
      ),
    );
  });
});

describe.concurrent('The description of set_mode', () => {
  it('says what a mode does on this kind of vehicle', async () => {
    await withDrone({}, async (lab) => {
      const found = lab.hub.findCommand(assetId(kit_id, drone_key), 'set_mode');
      const command = 'command' in found ? found.command : undefined;
      expect(command?.description).toMatch(/LOITER: hovers, but climbs and sinks with the throttle stick/u);
      expect(JSON.stringify(command?.input_schema)).toContain('with the stick down it sinks to the ground');
    });
  });
});
