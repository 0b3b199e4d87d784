/** A technician's hour: a kit is set up, and each of the usual troubles is diagnosed by one command that names the remedy. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { SimVehicle } from '../../../drivers/mavlink/sim/sim-vehicle.ts';
import { startMosquitto, type Broker } from '../../support/brokers/broker.ts';
import { type Certificates, makeCertificates } from '../../support/certificates.ts';
import { diskMissing, withTmpfs } from '../../support/disk/disks.ts';
import { eventually } from '../../support/eventually.ts';
import { type Kit, withKit } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { run } from '../../support/temporary.ts';
import { texts as cliTexts } from '../../../src/cli/texts.ts';

/** Where ground stations are sent to, and setup listens. */
const drone_port = 14_550;
const right = 'the right password';

interface Scene {
  readonly kit: Kit;
  readonly broker: Broker;
  readonly certificates: Certificates;
  readonly setup: (...words: readonly string[]) => Promise<string>;
  /** What the doctor prints, once a line of it matches. */
  readonly diagnosis: (trouble: RegExp) => Promise<string>;
}

/** A broker with TLS and passwords, and a machine on which nothing is configured. */
async function withScene(play: (scene: Scene) => Promise<void>): Promise<void> {
  await withKit({ rehearsed: false }, async (kit) => {
    const certificates = await makeCertificates(kit.dir, kit.kit_id);
    const tls = { ca: certificates.ca, pair: certificates.server };
    const broker = await startMosquitto({ tls, passwords: { [kit.kit_id]: right } });
    const password_file = join(kit.dir, 'from-the-office');
    await writeFile(password_file, `${right}\n`, { mode: 0o600 });
    const flags = {
      '--kit-id': kit.kit_id,
      '--broker': broker.url,
      '--password-file': password_file,
      '--ca': certificates.ca,
      '--runtime-dir': join(kit.dir, 'run'),
    };
    const setup: Scene['setup'] = async (...words) => {
      const { code, stdout, stderr } = await kit.run(
        'setup',
        '--no-ask',
        ...Object.entries(flags).flat(),
        ...words,
      );
      // Made for a day; the link that it proposes takes unsigned frames; and a disk that can be filled is one in memory.
      const expected =
        /^.*warning: (?:the certificate in|driver mavlink: link .* takes unsigned frames|state_dir .* is in memory) .*\n/gmu;
      expect({ code, stderr: stderr.replaceAll(expected, '') }).toEqual({ code: 0, stderr: '' });
      return stdout;
    };
    const diagnosis: Scene['diagnosis'] = async (trouble) => {
      let printed = '';
      await eventually(
        `the doctor says ${trouble.source}`,
        async () => {
          printed = (await kit.run('doctor')).stdout;
          return trouble.test(printed);
        },
        30_000,
      );
      return printed;
    };
    try {
      await play({ kit, broker, certificates, setup, diagnosis });
    } finally {
      await broker.stop();
    }
  });
}

function lineOf(text: string, what: string): string {
  return text.split('\n').find((line) => line.includes(`  ${what}`)) ?? `no line on ${what} in:\n${text}`;
}

describe.skipIf(peerMissing('mosquitto', 'mosquitto_passwd', 'openssl'))(
  "a technician's hour",
  { timeout: 90_000 },
  () => {
    it('begins with a setup that finds the drone, and its first position; a radio that falls silent is diagnosed', async () => {
      await withScene(async ({ kit, setup, diagnosis }) => {
        const landed = new AbortController();
        const home = { lat: 47.397742, lon: 8.545594, alt_amsl_m: 488 };
        const about = { autopilot: 'ardupilot', sysid: 1, uid: '00000000000de301', airborne: true } as const;
        const drone = new SimVehicle({ ...about, host: '127.0.0.1', port: drone_port, home }, landed.signal);
        await drone.start();
        try {
          expect(await setup('--state-dir', join(kit.dir, 'state'), '--scan', '2')).toContain(
            `found  MAVLink on UDP port ${drone_port}: system 1`,
          );
          await kit.start();
          await eventually('its position is seen', async () =>
            (await kit.status()).assets.some(
              ({ type, feeds }) => type === 'drone' && feeds['gps'] !== undefined,
            ),
          );
          const well = await diagnosis(/^ok {4}broker session: MQTT 5/mu);
          expect(well).not.toMatch(/^fail/mu);
          expect(lineOf(well, 'driver mavlink')).toMatch(/^ok /u);

          landed.abort();
          const trouble = await diagnosis(/^warn {2}drone .* offline: /mu);
          expect(lineOf(trouble, 'drone ')).toMatch(
            /check its power, and the connection, antenna and range of the radio/u,
          );
        } finally {
          landed.abort();
        }
      });
    });

    it.skipIf(diskMissing() || peerMissing('fallocate'))(
      'goes on with a disk that somebody else has filled',
      async () => {
        await withTmpfs(100, async (dir) => {
          await withScene(async ({ kit, setup, diagnosis }) => {
            await setup('--state-dir', join(dir, 'state'), '--scan', '0');
            const daemon = await kit.start();
            await diagnosis(/^(?:ok|warn) +disk space/mu);
            await run('fallocate', '--length', '90M', join(dir, 'logs'));
            const trouble = await diagnosis(/^fail {2}disk space/mu);
            expect(lineOf(trouble, 'disk space')).toContain(cliTexts.free_space);
            await daemon.end('SIGTERM');
          });
        });
      },
    );
  },
);
