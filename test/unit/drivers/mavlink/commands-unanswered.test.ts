/** Every command against both autopilots: unanswered, interrupted by a new start, cut off. */
import { describe, expect, it } from 'vitest';
import { each_command, payloadOf, prepare, withBoth } from './commands-lab.ts';
import { withDrone } from './mavlink-lab.ts';

describe.concurrent('a command without an answer', () => {
  const copies_sent: Readonly<Record<string, number>> = {
    arm: 1,
    goto_waypoint: 1,
    disarm: 3,
    return_home: 3,
    set_mode: 3,
  };
  const waited = each_command.map((about) => ({ ...about, copies: copies_sent[about.name] ?? 0 }));
  it.each(waited)('$name: copies sent: $copies, outcome unknown', async ({ name, copies, ...about }) => {
    await withBoth(about, async (lab, drone) => {
      prepare(drone, name);
      drone.react = () => undefined;
      await expect(lab.command(name, payloadOf(name))).rejects.toThrow(
        /did not answer .*; outcome unknown$/u,
      );
      expect(drone.commands).toHaveLength(copies);
    });
  });

  it('is not sent again when the vehicle says that it is at work', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = () => ({ result: 5 });
      const result = lab.command('return_home', {}, { remaining_ms: 4_000 });
      await expect(result).rejects.toThrow(/outcome unknown$/u);
      expect(drone.commands).toHaveLength(1);
    });
  });
});

describe.concurrent('a command whose vehicle goes away', () => {
  it.each(each_command)('$name: the vehicle starts anew in the middle', async ({ name, ...about }) => {
    await withBoth(about, async (lab, drone) => {
      prepare(drone, name);
      drone.react = () => {
        void drone.reboot();
        return undefined;
      };
      await expect(lab.command(name, payloadOf(name))).rejects.toThrow(
        /started anew or changed its link after .* was sent; outcome unknown$/u,
      );
    });
  });

  it.each(each_command)('$name: the link is lost after it was sent', async ({ name, ...about }) => {
    await withBoth(about, async (lab, drone) => {
      prepare(drone, name);
      drone.react = () => {
        drone.silent = true;
        return undefined;
      };
      await expect(lab.command(name, payloadOf(name))).rejects.toThrow(
        /^the link to Quadrotor 1 was lost after .* was sent .*; outcome unknown$/u,
      );
    });
  });
});
