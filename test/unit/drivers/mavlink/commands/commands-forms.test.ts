/** Commands to firmware that requires another form, and which commands pre-empt others. */
import { describe, expect, it } from 'vitest';
import { assetId } from '../../../../../src/contract/identity.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { texts } from '../../../../../drivers/mavlink/commands/texts.ts';
import { all, near, payloadOf, prepare } from './commands-lab.ts';
import { drone_key, withDrone } from '../mavlink-lab.ts';

const long_only = 7;
const int_only = 8;
const isLong = (fields: object): boolean => 'confirmation' in fields;

describe.concurrent('A command that is refused because of its form', () => {
  const others = all.filter(({ name, autopilot }) => name !== 'goto_waypoint' || autopilot === 'px4');
  it.each(others)('$name is sent once more, in the other form: $autopilot', async ({ name, ...about }) => {
    await withDrone(about, async (lab, drone) => {
      prepare(drone, name);
      const wanted = name === 'goto_waypoint' ? long_only : int_only;
      drone.react = (fields) => {
        if (isLong(fields) !== (wanted === long_only)) return { result: wanted };
        if (fields.command === 400) drone.flight.armed = fields.param1 === 1;
        if (fields.command === 20) drone.flight.mode = 'RTL';
        if (fields.command === 176) drone.flight.mode = 'LOITER';
        if ('param5' in fields && fields.command === 192) {
          drone.flight.mode = 'GUIDED';
          drone.flight.target = { lat: fields.param5, lon: fields.param6, height_m: fields.param7 - 488 };
        }
        return { result: 0 };
      };
      expect(await lab.command(name, payloadOf(name))).toMatchObject({ acknowledged: true });
      expect(drone.commands.map(isLong)).toEqual(name === 'goto_waypoint' ? [false, true] : [true, false]);
    });
  });

  it('is refused when the autopilot rejects both forms', async () => {
    await withDrone({}, async (lab, drone) => {
      drone.react = () => ({ result: int_only });
      await expect(lab.command('arm')).rejects.toThrow('Quadrotor 1 refused arm (COMMAND_INT_ONLY)');
      expect(drone.commands).toHaveLength(2);
    });
  });

  it('is not sent in the other form when the refusal comes late', async () => {
    await withDrone({}, async (lab, drone) => {
      drone.lag_ms = 600;
      drone.react = () => ({ result: int_only });
      await expect(lab.command('arm')).rejects.toThrow('refused arm (COMMAND_INT_ONLY)');
      expect(drone.commands).toHaveLength(1);
    });
  });
});

describe.concurrent('goto_waypoint to an ArduPilot without the command', () => {
  it('is sent as a message in GUIDED, and completes when the vehicle reports the target', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      await lab.command('set_mode', { mode: 'GUIDED' });
      drone.react = () => ({ result: 3 });
      expect(await lab.command('goto_waypoint', near)).toMatchObject({
        alt_amsl_m: 518,
        acknowledged: false,
      });
      expect(drone.flight.target).toMatchObject({ height_m: 30 });
    });
  });

  it('is refused in another mode, with what to do', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = () => ({ result: 3 });
      await expect(lab.command('goto_waypoint', near)).rejects.toThrow(
        `refused goto_waypoint (UNSUPPORTED): ${texts.fallback_mode}`,
      );
      expect(drone.flight.target).toBeUndefined();
    });
  });

  it('is not reported as completed when the vehicle reports no target', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      await lab.command('set_mode', { mode: 'GUIDED' });
      drone.react = () => {
        drone.flight.mode = 'LOITER';
        return { result: 3 };
      };
      await expect(lab.command('goto_waypoint', near)).rejects.toThrow(
        /was sent goto_waypoint as the older message, but .* was not observed .*outcome unknown$/u,
      );
    });
  });
});

it('A command that lands the vehicle or returns it home pre-empts others, and no other command does', async () => {
  await withDrone({ airborne: true }, async (lab) => {
    const isSafety = (name: string, payload = {}): boolean => {
      const found = lab.hub.findCommand(assetId(kit_id, drone_key), name);
      return 'command' in found && found.command.read(payload).is_safety;
    };
    expect(['arm', 'disarm', 'return_home'].map((name) => isSafety(name))).toEqual([false, true, true]);
    expect(isSafety('goto_waypoint', { lat: 47.4, lon: 8.5, alt_m: 30 })).toBe(false);
    expect(['LAND', 'RTL', 'LOITER', 'AUTO', 'GUIDED'].map((mode) => isSafety('set_mode', { mode }))).toEqual(
      [true, true, false, false, false],
    );
  });
});
