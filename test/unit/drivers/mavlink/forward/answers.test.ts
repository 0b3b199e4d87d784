/** Answers of a vehicle that a station commands beside the kit, and signed frames. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Outgoing } from '../../../../../drivers/mavlink/links/outgoing.ts';
import { keyOfPassphrase, signingWith } from '../../../../../drivers/mavlink/wire/signing.ts';
import { eventually } from '../../../../support/eventually.ts';
import { withDirectory } from '../../../../support/temporary.ts';
import { clockAt } from '../wire/signing-lab.ts';
import { fakeLink, kit } from '../links/fake-link.ts';
import { withEndpoints } from './forward-lab.ts';
import { freePort } from '../../../../support/ports.ts';

const answer = { command: 20, result: 0, progress: 0, result_param2: 0 };
const nobody = { target_system: 0, target_component: 0 };

describe('An answer of a vehicle', () => {
  it('without a target is not taken for ours after a station sent the same command', () => {
    const out = new Outgoing(kit);
    expect(out.isForUs({ ...answer, ...nobody })).toBe(true);
    out.foreign(20, performance.now());
    expect(out.isForUs({ ...answer, ...nobody })).toBe(false);
    expect(out.isForUs({ ...answer, command: 400, ...nobody })).toBe(true);
    expect(out.isForUs({ ...answer, target_system: 245, target_component: 191 })).toBe(true);
    expect(out.isForUs({ ...answer, target_system: 255, target_component: 190 })).toBe(false);
  });

  it('is no sign of another station, and neither is a frame of the kit that a router returns at once', () => {
    const out = new Outgoing(kit);
    const sent: Uint8Array[] = [];
    const link = fakeLink({ send: (frame) => sent.push(frame) > 0 });
    const about = { custom_mode: 0, type: 18, autopilot: 8, base_mode: 0, system_status: 4 };
    out.send('HEARTBEAT', { ...about, mavlink_version: 3 }, { link });
    const [bytes = new Uint8Array()] = sent;
    const now_ms = performance.now();
    expect(out.isOurs({ bytes }, now_ms)).toBe(true);
    // Another kit with the same ids sends the same heartbeat when its sequence number comes round.
    expect(out.isOurs({ bytes }, now_ms + 60_000)).toBe(false);
  });

  it('to a command of a station is not an answer to a command of the kit', async () => {
    const port = await freePort();
    await withEndpoints([{ kind: 'udp_listen', port, name: 'gcs' }], async ({ lab, drone, station }) => {
      const gcs = await station({ kind: 'udp', port });
      await lab.sees('sys_status', ({ armed }) => armed === true);
      let isFirst = true;
      // The command of the kit is never answered; that of the station is, at once.
      drone.react = (_fields, execute) => {
        if (!isFirst) return execute();
        isFirst = false;
        gcs.command(176, 1, 1);
        return undefined;
      };
      drone.odd_mode = 3;
      await expect(lab.command('set_mode', { mode: 'GUIDED' })).rejects.toThrow(/outcome unknown$/u);
      await eventually('the station was answered', () =>
        gcs.messages.some(({ name, fields }) => name === 'COMMAND_ACK' && fields.target_system === 255),
      );
    });
  });
});

describe('Signed frames', () => {
  it('are forwarded with their signatures, and others only if the endpoint allows it', async () => {
    await withDirectory(async (dir) => {
      await writeFile(join(dir, 'key'), 'a passphrase', { mode: 0o600 });
      const [port, lenient] = [await freePort(), await freePort()];
      const endpoints = [
        { kind: 'udp_listen', port, name: 'gcs' },
        { kind: 'udp_listen', port: lenient, name: 'recorder', unverified: true },
      ];
      const clock = clockAt((Date.now() - Date.UTC(2015, 0, 1)) * 100);
      const sign = signingWith(keyOfPassphrase('a passphrase'), clock).signer(7);
      await withEndpoints(
        endpoints,
        async ({ drone, station }) => {
          const strict = await station({ kind: 'udp', port });
          const recorder = await station({ kind: 'udp', port: lenient });
          await eventually('signed frames arrive', () => strict.frames.length > 10);
          expect(strict.frames.every((frame) => drone.sent.includes(frame))).toBe(true);
          drone.sign = undefined;
          drone.sendText('unsigned');
          const unsigned = (frames: readonly string[]): boolean =>
            frames.some((frame) => frame.slice(4, 6) === '00');
          await eventually('the recorder receives it', () => unsigned(recorder.frames));
          expect(unsigned(strict.frames)).toBe(false);
        },
        { signing: { key_file: join(dir, 'key'), clock_file: join(dir, 'clock') } },
        { sign },
      );
    });
  });
});
