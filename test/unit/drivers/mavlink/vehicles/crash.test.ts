/**
 * After a crash an autopilot may take itself for flying, and then it refuses to disarm unless it is forced (ArduPilot#2353, #12012,
 * #20234; PX4: "Disarming denied: not landed"): the simulated vehicles do so too.
 */
import { describe, expect, it } from 'vitest';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import type { JsonObject } from '../../../../../src/contract/json.ts';
import type { FakeDrone } from '../../../../fakes/fake-drone.ts';
import { eventually } from '../../../../support/eventually.ts';
import { autopilots } from '../commands/commands-lab.ts';
import { type MavlinkLab, withDrone } from '../mavlink-lab.ts';

const forced = 21_196;
const level = { time_boot_ms: 60_000, roll: 0, pitch: 0, yaw: 0, rollspeed: 0, pitchspeed: 0, yawspeed: 0 };

function crash(drone: FakeDrone, roll_deg = 98): void {
  drone.flight.mode = 'HOLD';
  drone.flight.height_m = 0.2;
  drone.flight.believes_airborne = true;
  drone.flight.roll_deg = roll_deg;
}

/** Resolves with the result of the first disarm that is not refused. */
async function disarmed(lab: MavlinkLab): Promise<JsonObject> {
  let result: JsonObject = {};
  await eventually('disarmed', async () => {
    try {
      result = await lab.command('disarm');
    } catch (error) {
      if (!String(error).includes(texts.airborne)) throw error;
      return false;
    }
    return true;
  });
  return result;
}

describe.concurrent('The motors of a vehicle that takes itself for flying', () => {
  it.each(autopilots)('are stopped once it has lain still on its side: %s', async (autopilot) => {
    await withDrone({ airborne: true, autopilot }, async (lab, drone) => {
      crash(drone);
      expect(await disarmed(lab)).toEqual({ armed: false, forced: true, acknowledged: true });
      expect(drone.flight.armed).toBe(false);
      expect(drone.commands.map(({ param1, param2 }) => [param1, param2])).toEqual([[0, forced]]);
    });
  });

  it('are not stopped by a further copy once it lies on its side no more', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      crash(drone);
      let isSent = false;
      drone.react = () => {
        isSent = true;
        drone.flight.roll_deg = 0;
        drone.send('ATTITUDE', level);
        return undefined;
      };
      await eventually('sent and given up', async () => {
        await expect(lab.command('disarm', {}, { remaining_ms: 4_000 })).rejects.toThrow(
          /airborne|outcome unknown/u,
        );
        return isSent;
      });
      expect(drone.commands).toHaveLength(1);
    });
  });

  it.each([
    { what: 'a copter that hovers', about: { airborne: true }, roll_deg: 0, height_m: 0.4 },
    { what: 'a copter that hovers in a storm', about: { airborne: true }, roll_deg: 55, height_m: 5 },
    { what: 'a helicopter on its back', about: { airborne: true, type: 4 }, roll_deg: 180, height_m: 20 },
    { what: 'a plane on its back', about: { airborne: true, type: 1 }, roll_deg: 180, height_m: 80 },
  ])('are never stopped: $what', async ({ about, roll_deg, height_m }) => {
    await withDrone(about, async (lab, drone) => {
      drone.flight.mode = 'HOLD';
      drone.flight.height_m = height_m;
      drone.flight.roll_deg = roll_deg;
      // Longer than a crash has to last.
      const from_ms = performance.now();
      await eventually('hovered', async () => {
        await expect(lab.command('disarm')).rejects.toThrow(texts.airborne);
        return performance.now() - from_ms > 4_500;
      });
      expect(drone.commands).toEqual([]);
      expect(drone.flight.armed).toBe(true);
    });
  });
});
