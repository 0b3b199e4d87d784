/** Vehicles and stations that are not what they seem: quadplanes, submarines, other signatures, our own ids. */
import { createSocket } from 'node:dgram';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { texts as link_texts } from '../../../../../drivers/mavlink/links/texts.ts';
import { keyOfPassphrase, signingWith, ticks_per_s } from '../../../../../drivers/mavlink/wire/signing.ts';
import { blank, encode } from '../../../../../drivers/mavlink/wire/messages.ts';
import { assetId } from '../../../../../src/contract/identity.ts';
import { sleep } from '../../../../../src/platform/time.ts';
import { field } from '../../../../fakes/fake-drone.ts';
import { eventually } from '../../../../support/eventually.ts';
import { kit_id } from '../../../../support/kit/hub-lab.ts';
import { withDirectory } from '../../../../support/temporary.ts';
import { drone_key, type MavlinkLab, withLab } from '../mavlink-lab.ts';
import { clockAt } from '../wire/signing-lab.ts';

describe.concurrent('A quadplane of ArduPilot', () => {
  it.each([
    { announced: 'a plane', type: 1 },
    { announced: 'a quadrotor', type: 2 },
    { announced: 'a VTOL', type: 20 },
  ])('has the modes of Plane when it announces $announced', async ({ type }) => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ type, quadplane: true, airborne: true });
      await lab.sees('sys_status', ({ flight_mode, ekf_ok }) => flight_mode === 'AUTO' && ekf_ok !== null);
      // Requested after EXTENDED_SYS_STATE, which shows that it is one.
      await lab.sees('vfr_hud');
      expect(await lab.command('set_mode', { mode: 'GUIDED' })).toMatchObject({ flight_mode: 'GUIDED' });
      expect(drone.commands.at(-1)).toMatchObject({ command: 176, param2: 15 });
      expect(await lab.command('set_mode', { mode: 'LAND' })).toMatchObject({ flight_mode: 'QLAND' });
      // Q_RTL_MODE: it returns as a copter, in another mode than requested.
      drone.react = (_command, execute) => {
        const answer = execute();
        drone.odd_mode = 21;
        return answer;
      };
      expect(await lab.command('set_mode', { mode: 'RTL' })).toMatchObject({ flight_mode: 'QRTL' });
    });
  });
});

describe.concurrent('A submarine of ArduPilot', () => {
  it('has no return_home, which it could not execute, and rises with surface', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ type: 12, airborne: true });
      await lab.sees('sys_status', ({ armed }) => armed === true);
      const offered = (name: string): boolean =>
        'command' in lab.hub.findCommand(assetId(kit_id, drone_key), name);
      expect(['arm', 'surface', 'set_mode', 'return_home'].map(offered)).toEqual([true, true, true, false]);
      expect(await lab.command('surface')).toEqual({ flight_mode: 'SURFACE', acknowledged: true });
      expect(drone.commands.at(-1)).toMatchObject({ command: 176, param2: 9 });
    });
  });

  // BlueROV2 (ArduPilot#26648, #27525, cockpit#1683).
  it('without a position shows its depth, and is armed', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ type: 12 });
      drone.gps = 'lost';
      drone.flight.height_m = -7.4;
      await lab.sees('sys_status', ({ pre_arm_check, ekf_ok }) => pre_arm_check === true && ekf_ok === true);
      expect(await lab.sees('depth', ({ depth_m }) => depth_m === 7.4)).toEqual({ depth_m: 7.4 });
      expect(await lab.command('arm')).toEqual({ armed: true, acknowledged: true });
    });
  });

  it.each([
    { before: 'another mode', mode: 'HOLD', shown: 'POSHOLD' },
    { before: 'the mode that it ends in', mode: 'DEPTH_HOLD', shown: 'ALT_HOLD' },
  ] as const)('is at the surface when surface finds it there, in $before', async ({ mode, shown }) => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ type: 12, airborne: true });
      drone.flight.height_m = -0.04;
      drone.flight.mode = mode;
      await lab.sees('sys_status', ({ armed, flight_mode }) => armed === true && flight_mode === shown);
      expect(await lab.command('surface')).toEqual({ flight_mode: 'ALT_HOLD', acknowledged: true });
      expect(drone.commands).toHaveLength(1);
    });
  });

  it.each([
    { why: 'is kept at its depth', alt_amsl_m: 488, height_m: -20 },
    { why: 'has no sensor of its depth', alt_amsl_m: 0, height_m: 0 },
  ])('is not at the surface when it accepts surface and $why', async ({ alt_amsl_m, height_m }) => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ type: 12, airborne: true, home: { ...field, alt_amsl_m } });
      drone.flight.height_m = height_m;
      await lab.sees('sys_status', ({ armed }) => armed === true);
      drone.react = () => ({ result: 0 });
      await expect(lab.command('surface')).rejects.toThrow(
        /mode SURFACE, or .* not observed .*; outcome unknown$/u,
      );
      expect(drone.commands).toHaveLength(1);
    });
  });
});

// ArduPilot#18586. It has no command to return (Blimp/GCS_MAVLink_Blimp.cpp).
describe.concurrent('A Blimp of ArduPilot', () => {
  it.each([
    { command: 'return_home', payload: {}, gps: 'ok', mode: 4, flight_mode: 'RTL' },
    { command: 'set_mode', payload: { mode: 'RTL' }, gps: 'ok', mode: 4, flight_mode: 'RTL' },
    { command: 'hold', payload: {}, gps: 'ok', mode: 3, flight_mode: 'LOITER' },
    { command: 'hold', payload: {}, gps: 'lost', mode: 0, flight_mode: 'LAND' },
    { command: 'land', payload: {}, gps: 'ok', mode: 0, flight_mode: 'LAND' },
  ] as const)('changes to $flight_mode by $command', async ({ command, payload, gps, mode, flight_mode }) => {
    await withLab(async (lab) => {
      const drone = await lab.fly({ type: 7, airborne: true });
      drone.gps = gps;
      drone.odd_mode = 1;
      drone.react = ({ command: number, ...fields }) => {
        if (number !== 176) return { result: 3 };
        drone.odd_mode = fields.param2;
        return { result: 0 };
      };
      await lab.sees('sys_status', ({ flight_mode: shown, ekf_ok }) => shown === 'MANUAL' && ekf_ok !== null);
      if (gps === 'ok') await lab.sees('gps');
      expect(await lab.command(command, payload)).toMatchObject({ flight_mode });
      expect(drone.odd_mode).toBe(mode);
    });
  });
});

describe.concurrent('A component of a vehicle', () => {
  it('is its child also when it sends from another address', async () => {
    await withLab(async (lab) => {
      await lab.fly();
      await lab.until('online');
      const camera = createSocket('udp4');
      const beat = { ...blank('HEARTBEAT'), type: 30, autopilot: 8, system_status: 4, mavlink_version: 3 };
      camera.send(encode('HEARTBEAT', beat, { sysid: 1, compid: 100, seq: 0 }), lab.port, '127.0.0.1');
      await lab.until('online', `${drone_key}:component-100`);
      expect(lab.hub.assets()).toHaveLength(2);
      const text = 'Storage is nearly full, 90 MB are left of it, and it was';
      for (const [chunk_seq, chunk] of [text.slice(0, 50), text.slice(50)].entries()) {
        const fields = { severity: 4, text: chunk, id: 3, chunk_seq };
        camera.send(encode('STATUSTEXT', fields, { sysid: 1, compid: 100, seq: 1 }), lab.port, '127.0.0.1');
      }
      expect(await lab.sees('messages')).toMatchObject({
        messages: [{ text: `camera: ${text}`, severity: 'warning' }],
      });
      camera.close();
    });
  });
});

describe.concurrent('Texts of which a router delivers each frame twice (qgroundcontrol#12754)', () => {
  it.each([
    ['an autopilot', 1, ''],
    ['a camera', 100, 'camera: '],
  ])('of %s are told once, and whole', async (_of, compid, name) => {
    await withLab(async (lab) => {
      const drone = await lab.fly();
      await lab.until('online');
      drone.beatCamera();
      await lab.until('online', `${drone_key}:component-100`);
      const tell = (id: number, ...chunks: readonly string[]): void => {
        for (const [chunk_seq, chunk] of chunks.entries()) {
          const fields = { severity: 4, text: chunk, id, chunk_seq };
          const frame = encode('STATUSTEXT', fields, { sysid: 1, compid, seq: id + chunk_seq });
          for (let copy = 0; copy < 2; copy += 1) drone.sendRaw(frame);
        }
      };
      const text = 'Storage is nearly full, 90 MB are left of it, and it was';
      tell(3, text.slice(0, 50), text.slice(50));
      tell(5, `${'-'.repeat(44)} lost:`);
      await sleep(1_500, new AbortController().signal);
      tell(7, 'no more');
      await lab.sees('messages', ({ messages }) => JSON.stringify(messages).includes('no more'));
      const told = lab.outbox.drafts.findLast(({ channel }) => channel === lab.feed('messages'));
      expect(told?.data).toMatchObject({
        messages: [
          { text: `${name}no more`, count: 1 },
          { text: `${name}${'-'.repeat(44)} lost:`, count: 1 },
          { text: `${name}${text}`, count: 1 },
        ],
      });
    });
  });
});

describe.concurrent('Signatures that do not fit', () => {
  const signerOf = (passphrase: string) => {
    let ticks = Math.round((Date.now() - Date.UTC(2015, 0)) * 100);
    const clock = { ...clockAt(ticks), next: () => (ticks += 1) };
    return signingWith(keyOfPassphrase(passphrase), clock).signer(0);
  };

  const withKey = async (run: (lab: MavlinkLab) => Promise<void>): Promise<void> =>
    withDirectory(async (dir) => {
      const signing = { key_file: join(dir, 'key'), clock_file: join(dir, 'clock') };
      await writeFile(signing.key_file, 'ours', { mode: 0o600 });
      await withLab({ signing }, run);
    });

  it('are logged once when no key is configured', async () => {
    await withLab(async (lab) => {
      const drone = await lab.fly();
      drone.sign = signerOf('theirs');
      await eventually('it is logged', () => lab.log.at('warn').includes(link_texts.signature.no_key));
      await lab.until('online');
      expect(lab.log.at('warn').filter((line) => line === link_texts.signature.no_key)).toHaveLength(1);
    });
  });

  it('are logged when the key is another one, or missing in the vehicle, or its frames are MAVLink 1', async () => {
    await withKey(async (lab) => {
      const drone = await lab.fly();
      await eventually('unsigned', () => lab.log.at('warn').includes(link_texts.signature.unsigned));
      drone.sign = signerOf('theirs');
      await eventually('other key', () => lab.log.at('warn').includes(link_texts.signature.other_key));
      drone.speaks_mavlink1 = true;
      await eventually('MAVLink 1', () => lab.log.at('warn').includes(link_texts.signature.mavlink1));
      expect(lab.hub.assets()).toEqual([]);
    });
  });

  it('are accepted from a vehicle whose clock is behind once it has received the kit', async () => {
    await withKey(async (lab) => {
      const drone = await lab.fly();
      const now = (): number => Math.round((Date.now() - Date.UTC(2015, 0)) * 100);
      let ticks = now() - 3_600 * ticks_per_s;
      const clock = { ...clockAt(0), next: () => (ticks += 1) };
      drone.sign = signingWith(keyOfPassphrase('ours'), clock).signer(0);
      await eventually('it receives the kit', () => drone.beats.length > 0);
      expect(lab.log.at('warn')).toContain(link_texts.signature.old);
      // Autopilots follow the clock of what they receive.
      ticks = now() + ticks_per_s;
      await lab.until('online');
    });
  });
});
