/** Answers that are not to the command, or are not true: none of them completes it, and none makes it refused. */
import { createSocket } from 'node:dgram';
import { describe, expect, it } from 'vitest';
import { encode, type MessageName, type Messages } from '../../../../../drivers/mavlink/wire/messages.ts';
import { withDrone } from '../mavlink-lab.ts';

const set_mode = 176;
const set_speed = 178;
const accepted = 0;
const denied = 2;
const in_progress = 5;
const kit = { target_system: 245, target_component: 191 };

function answer(command: number, result: number, to = kit): Messages['COMMAND_ACK'] {
  return { command, result, progress: 0, result_param2: 0, ...to };
}

describe.concurrent('An answer', () => {
  it.each([
    { from: 'to another station', to: { target_system: 255, target_component: 190 } },
    { from: 'to another program of the kit', to: { target_system: 245, target_component: 190 } },
  ])('$from does not count', async ({ to }) => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = ({ command }) => {
        drone.send('COMMAND_ACK', answer(command, accepted, to));
        drone.send('COMMAND_ACK', answer(command, denied, to));
        return undefined;
      };
      await expect(lab.command('set_speed', { speed_mps: 5 })).rejects.toThrow(/did not answer .* unknown$/u);
    });
  });

  it.each([
    { whose: 'of a camera of the vehicle', compid: 100 },
    { whose: 'of a second autopilot of the vehicle', compid: 2 },
  ])('$whose does not count', async ({ compid }) => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      const beat = { custom_mode: 3, type: compid === 2 ? 2 : 30, autopilot: compid === 2 ? 3 : 8 };
      const rest = { base_mode: 129, system_status: 4, mavlink_version: 3 };
      drone.react = ({ command }) => {
        drone.send('HEARTBEAT', { ...beat, ...rest }, compid);
        drone.send('COMMAND_ACK', answer(command, accepted), compid);
        return undefined;
      };
      await expect(lab.command('set_speed', { speed_mps: 5 })).rejects.toThrow(/did not answer .* unknown$/u);
      expect(new Set(drone.commands.map(({ command }) => command))).toEqual(new Set([set_speed]));
    });
  });

  it('that a router delivers twice does not count for the next command', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      const frame = encode('COMMAND_ACK', answer(set_mode, denied), { sysid: 1, compid: 1, seq: 77 });
      drone.react = () => {
        drone.sendRaw(frame);
        return undefined;
      };
      await expect(lab.command('set_mode', { mode: 'GUIDED' })).rejects.toThrow(/refused set_mode GUIDED/u);
      await expect(lab.command('set_mode', { mode: 'AUTO' })).rejects.toThrow(/did not answer .* unknown$/u);
    });
  });

  it('that refuses what the vehicle then does leaves the outcome unknown', async () => {
    await withDrone({}, async (lab, drone) => {
      drone.react = (_command, execute) => {
        execute();
        return { result: denied };
      };
      await expect(lab.command('arm')).rejects.toThrow(/refused arm \(DENIED\), but .*; outcome unknown$/u);
    });
  });
});

const place = { lat: 47.398_2, lon: 8.545_594 };
const [x, y, alt] = [Math.round(place.lat * 1e7), Math.round(place.lon * 1e7), 518];
const velocity = { vx: 0, vy: 0, vz: 0, afx: 0, afy: 0, afz: 0, yaw: 0, yaw_rate: 0 };
const target = {
  time_boot_ms: 1,
  coordinate_frame: 6,
  type_mask: 0,
  lat_int: x,
  lon_int: y,
  alt,
  ...velocity,
};

describe.concurrent('A stranger at another address with the ids of the vehicle', () => {
  it.each([
    { name: 'arm', command: 400, about: {}, payload: {}, mode: 0 },
    { name: 'takeoff', command: 22, about: {}, payload: { height_m: 20 }, mode: 4 },
    {
      name: 'goto_waypoint',
      command: 192,
      about: { airborne: true },
      payload: { ...place, alt_m: 30 },
      mode: 4,
    },
    { name: 'set_speed', command: 178, about: { airborne: true }, payload: { speed_mps: 5 }, mode: 3 },
    { name: 'return_home', command: 20, about: { airborne: true }, payload: {}, mode: 6 },
  ])(
    'completes no $name by its answer and what it shows',
    async ({ name, command, about, payload, mode }) => {
      await withDrone(about, async (lab, drone) => {
        if (name === 'takeoff') {
          await lab.command('set_mode', { mode: 'GUIDED' });
          await lab.command('arm');
        }
        const stranger = createSocket('udp4');
        const send = <K extends MessageName>(message: K, fields: Messages[K]): void =>
          stranger.send(encode(message, fields, { sysid: 1, compid: 1, seq: 0 }), lab.port, '127.0.0.1');
        const pretend = (): void => {
          const armed = { base_mode: 209, system_status: 4, mavlink_version: 3, type: 2, autopilot: 3 };
          send('HEARTBEAT', { custom_mode: mode, ...armed });
          send('EXTENDED_SYS_STATE', { vtol_state: 0, landed_state: 2 });
          send('POSITION_TARGET_GLOBAL_INT', target);
          send('COMMAND_ACK', answer(command, accepted));
        };
        pretend();
        drone.react = () => {
          pretend();
          return undefined;
        };
        const failure = lab.command(name, payload, { remaining_ms: 2_500 });
        await expect(failure).rejects.toThrow(/did not answer .* unknown$/u);
        expect(drone.commands.at(-1)).toMatchObject({ command });
        stranger.close();
      });
    },
  );
});

describe.concurrent('A command that the vehicle says to execute', () => {
  it('is completed by its effect when no final answer comes', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = (_command, execute) => {
        execute();
        return { result: in_progress };
      };
      const result = lab.command('return_home', {}, { remaining_ms: 60_000 });
      expect(await result).toEqual({ flight_mode: 'RTL', acknowledged: false });
      expect(drone.commands).toHaveLength(1);
    });
  });

  it('is refused by the final answer, also after its effect was seen', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = ({ command }, execute) => {
        execute();
        setTimeout(() => drone.send('COMMAND_ACK', answer(command, denied)), 300);
        return { result: in_progress };
      };
      const result = lab.command('return_home', {}, { remaining_ms: 60_000 });
      await expect(result).rejects.toThrow(/refused return_home \(DENIED\), but .*; outcome unknown$/u);
    });
  });

  it('has an unknown outcome when the vehicle reports nothing more, long before the deadline', async () => {
    await withDrone({ airborne: true }, async (lab, drone) => {
      drone.react = () => ({ result: in_progress });
      const result = lab.command('return_home', {}, { remaining_ms: 3_600_000 });
      await expect(result).rejects.toThrow(/did not answer .*; outcome unknown$/u);
      expect(drone.commands).toHaveLength(1);
    });
  }, 60_000);
});
