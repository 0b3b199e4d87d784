/**
 * Video through two NATs, of which the kit's is symmetric and 600 ms away: the shipped kit and service, mosquitto, coturn, real H.264 of GStreamer
 * behind the API of MediaMTX, and Chromium with the console. Prints what it measured.
 */
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { startMosquitto } from '../support/brokers/broker.ts';
import { type Child, startChild } from '../support/child.ts';
import { eventually } from '../support/eventually.ts';
import { nat_lab_address, type NatLab, type NatPlace, withNatLab } from '../support/gateway/nat-lab.ts';
import { command_file, withKit } from '../support/kit/kit.ts';
import { peerMissing, program, rootMissing } from '../support/peers.ts';
import { withDirectory } from '../support/temporary.ts';

const secret = 'a-secret-of-the-turn-server';
const camera_said = z.object({ port: z.int(), username: z.string(), password: z.string() });
const listed = z.object({ assets: z.array(z.object({ id: z.string(), whep_url: z.string().nullable() })) });

interface Scene {
  readonly lab: NatLab;
  readonly kit_id: string;
  readonly asset_id: string;
  readonly key: string;
  readonly dir: string;
  /** Viewers that the media server has. */
  readonly viewers: () => Promise<number>;
  /** Everything that was logged. */
  readonly logs: () => string;
}

const service_url = `http://${nat_lab_address}:8080`;
const media = { api: 9997, viewers: 8889 } as const;

async function withScene(play: (scene: Scene) => Promise<void>): Promise<void> {
  await withNatLab(async (lab) =>
    withDirectory(async (dir) => {
      const children: Child[] = [];
      const start = (place: NatPlace, args: readonly string[], command?: readonly string[]): Child => {
        const child = startChild(args, { prefix: lab.prefix(place), ...(command && { program: command }) });
        children.push(child);
        return child;
      };
      const broker = await startMosquitto({
        prefix: lab.prefix('internet'),
        conf: [`listener 1883 ${nat_lab_address}`, 'allow_anonymous true'],
      });
      const broker_url = `mqtt://${nat_lab_address}:1883`;
      try {
        const turn_log = join(dir, 'turn.log');
        start(
          'internet',
          [
            '-n',
            '--no-cli',
            '--no-tls',
            '--no-dtls',
            '--use-auth-secret',
            `--static-auth-secret=${secret}`,
            '--realm=kits',
            `--listening-ip=${nat_lab_address}`,
            `--relay-ip=${nat_lab_address}`,
            `--log-file=${turn_log}`,
            '--simple-log',
            `--pidfile=${join(dir, 'turn.pid')}`,
          ],
          [program('turnserver')],
        );
        const fake = join(import.meta.dirname, '../fakes/services/webrtc-camera.py');
        const server = start('kit', [fake, String(media.api), String(media.viewers)], ['/usr/bin/python3']);
        await server.printed(/ready/u);
        const camera = start('kit', [join(import.meta.dirname, '../support/cameras/camera-process.ts')]);
        const { port, username, password } = camera_said.parse(JSON.parse(await camera.printed(/\{.*\}/u)));
        const [secret_file, password_file, config] = ['turn-secret', 'password', 'service.yaml'].map((name) =>
          join(dir, name),
        );
        if (!secret_file || !password_file || !config) throw new Error('no files');
        await writeFile(secret_file, secret, { mode: 0o600 });
        await writeFile(password_file, password, { mode: 0o600 });
        const turn = (transport: string): string => `turn:${nat_lab_address}:3478?transport=${transport}`;
        const text = {
          broker: { url: broker_url },
          database: join(dir, 'service.db'),
          listen: `${nat_lab_address}:8080`,
          video: { turn: { urls: [turn('udp'), turn('tcp')], secret_file } },
        };
        await writeFile(config, JSON.stringify(text));
        const words = ['service', 'key', 'add', 'test', '--all-kits', '--config', config];
        const key = (await startChild([command_file, ...words]).ended).stdout.trim();
        const service = start('internet', [command_file, 'service', '--config', config]);
        await service.printed(/service connected to the broker/u);
        await withKit({ rehearsed: false }, async (kit) => {
          const entry = { name: 'Gate', host: '127.0.0.1', port, username, password_file };
          await kit.configure({
            broker: { url: broker_url },
            media: {
              server: 'mediamtx',
              viewer_url: `http://127.0.0.1:${media.viewers}`,
              ice_servers: [{ url: `stun:${nat_lab_address}:3478` }],
            },
            drivers: [{ driver: 'onvif', options: { cameras: [entry] } }],
          });
          const daemon = start('kit', [command_file, 'run', '--config', kit.config_file]);
          await daemon.printed(/kit-connector started/u);
          const ask = async (place: NatPlace, url: string): Promise<unknown> => {
            const curl = startChild(['-sf', '-H', `x-api-key: ${key}`, url], {
              prefix: lab.prefix(place),
              program: [program('curl')],
            });
            return JSON.parse((await curl.ended).stdout || 'null');
          };
          let asset_id = '';
          await eventually('the service has the camera', async () => {
            const answer = listed.safeParse(
              await ask('viewer', `${service_url}/api/kits/${kit.kit_id}/assets`),
            );
            asset_id = answer.data?.assets.find((each) => each.whep_url !== null)?.id ?? '';
            return asset_id !== '';
          });
          const sessions = z.object({ itemCount: z.int() });
          await play({
            lab,
            kit_id: kit.kit_id,
            asset_id,
            key,
            dir,
            viewers: async () =>
              sessions.parse(await ask('kit', `http://127.0.0.1:${media.api}/v3/webrtcsessions/list`))
                .itemCount,
            logs: () => [daemon, service].map((each) => each.output()).join('\n') + broker.log(),
          });
        });
      } finally {
        for (const child of children) await child.end('SIGKILL');
        await broker.stop();
      }
    }),
  );
}

/** Chromium in the network of the viewer, logged in at the console. */
async function openConsole({ lab, dir, key, kit_id }: Scene): Promise<{ browser: Browser; page: Page }> {
  const wrapper = join(dir, 'chromium');
  await writeFile(
    wrapper,
    `#!/bin/sh\nexec ${lab.prefix('viewer').join(' ')} ${program('chromium-headless-shell')} "$@"\n`,
  );
  await chmod(wrapper, 0o755);
  const browser = await chromium.launch({
    executablePath: wrapper,
    chromiumSandbox: false,
    args: ['--disable-quic', '--disable-gpu', '--no-first-run', '--disable-background-networking'],
  });
  const page = await (await browser.newContext()).newPage();
  await page.addInitScript(() => {
    const times = { asked_ms: 0, frame_ms: 0 };
    Object.assign(globalThis, { times });
    const send = globalThis.fetch;
    globalThis.fetch = async (input, init) => {
      if (typeof input === 'string' && input.includes('/whep') && times.asked_ms === 0)
        times.asked_ms = performance.now();
      return send(input, init);
    };
    document.addEventListener('loadeddata', () => (times.frame_ms ||= performance.now()), true);
  });
  await page.goto(`${service_url}/#key=${encodeURIComponent(key)}`);
  await page.locator('.asset-row', { hasText: 'Gate' }).waitFor();
  await page.goto(`${service_url}/#/k/${kit_id}/assets`);
  return { browser, page };
}

const timesOf = z.object({ asked_ms: z.number(), frame_ms: z.number() });

/** Milliseconds from the first request for video to its first picture. */
async function firstFrame({ kit_id, asset_id }: Scene, page: Page): Promise<number> {
  await page.evaluate(() => {
    Object.assign(Reflect.get(globalThis, 'times') as object, { asked_ms: 0, frame_ms: 0 });
  });
  await page.goto(`${service_url}/#/k/${kit_id}/a/${asset_id}`);
  await page.locator('.video .rec').waitFor({ timeout: 60_000 });
  const { asked_ms, frame_ms } = timesOf.parse(
    await page.evaluate((): unknown => Reflect.get(globalThis, 'times')),
  );
  return frame_ms - asked_ms;
}

async function leave({ kit_id }: Scene, page: Page): Promise<void> {
  await page.goto(`${service_url}/#/k/${kit_id}/assets`);
}

describe.skipIf(
  rootMissing() ||
    peerMissing('mosquitto', 'turnserver', 'chromium-headless-shell', 'nft', 'curl', 'gst-inspect-1.0'),
)('video through two NATs', () => {
  it('comes over TURN, also by TCP, and leaves no stream and no secret behind', async () => {
    await withScene(async (scene) => {
      expect(await scene.viewers()).toBe(0);
      const { browser, page } = await openConsole(scene);
      try {
        const by_udp = [];
        for (let n = 0; n < 3; n += 1) {
          by_udp.push(Math.round(await firstFrame(scene, page)));
          expect(await scene.viewers()).toBe(1);
          await leave(scene, page);
          await eventually('the kit sends nothing more', async () => (await scene.viewers()) === 0);
        }
        await scene.lab.blockUdp();
        const by_tcp = Math.round(await firstFrame(scene, page));
        await leave(scene, page);
        await eventually('the kit sends nothing more', async () => (await scene.viewers()) === 0);
        console.log(`first picture: ${by_udp.join(', ')} ms over UDP, ${by_tcp} ms over TCP`);
        for (const hidden of [secret, scene.key]) expect(scene.logs()).not.toContain(hidden);
      } finally {
        await browser.close();
      }
    });
  });
});
