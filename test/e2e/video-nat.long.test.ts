/**
 * Video through two NATs, of which the kit's is symmetric and 600 ms away: the shipped kit and service, mosquitto, coturn, real H.264 of GStreamer
 * behind the API of MediaMTX, and as viewers Chromium and Firefox with the console, and werift. Prints what it measured.
 */
import { chmod, readFile, writeFile } from 'node:fs/promises';
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
import { run, withDirectory } from '../support/temporary.ts';

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
  /** Relays that the TURN server keeps: a socket each. */
  readonly relays: () => Promise<number>;
  /** Everything that was logged. */
  readonly logs: () => string;
  readonly dir_of_kit: string;
  /** Resident memory of the daemon. */
  readonly memoryMb: () => Promise<number>;
  /** Runs a program in the network of the viewer, with a file of `test/support`; resolves with the JSON that it prints. */
  readonly inViewer: (file: string, ...words: readonly string[]) => Promise<unknown>;
  /** What cameras send from now on. */
  readonly sends: (codec: 'H264' | 'VP8') => Promise<void>;
  /** Steps of the media server from then on. */
  readonly stepsSince: (from_ms: number) => readonly Step[];
}

interface Step {
  readonly trace: string;
  readonly at_ms: number;
}
const step = z.object({ trace: z.string(), at_ms: z.number() });

interface SceneOptions {
  /** The media server of the kit relays over TCP, too. */
  readonly kitRelays?: boolean;
  /** Of the kit, as the driver of the links has it. */
  readonly link?: Readonly<Record<string, unknown>>;
  /** Of the configuration of the kit. */
  readonly config?: Readonly<Record<string, unknown>>;
}

const service_url = `http://${nat_lab_address}:8080`;
const media = { api: 9997, viewers: 8889 } as const;
const media_api = `http://127.0.0.1:${media.api}`;
const support = join(import.meta.dirname, '../support');

async function withScene(
  { kitRelays = false, link = { type: 'satellite' }, config: more = {} }: SceneOptions,
  play: (scene: Scene) => Promise<void>,
): Promise<void> {
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
            // Of viewers that release nothing, as werift and those that lose their network: 600 s by default.
            '--max-allocate-lifetime=60',
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
        const camera = start('kit', [join(support, 'cameras/camera-process.ts'), `${media_api}/keyframe`]);
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
              ...(kitRelays && {
                ice_servers: [{ url: turn('tcp'), username: 'AUTH_SECRET', password_file: secret_file }],
              }),
            },
            drivers: [
              { driver: 'onvif', options: { cameras: [entry] } },
              { driver: 'links', options: { wan: { eth0: link }, public_ip: { stun: [nat_lab_address] } } },
            ],
            ...more,
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
              sessions.parse(await ask('kit', `${media_api}/v3/webrtcsessions/list`)).itemCount,
            async relays() {
              const inside = lab.prefix('internet').slice(1);
              const sockets = await run('ip', ...inside, 'ss', '-Huan', 'sport >= :49152');
              return sockets.split('\n').filter((line) => line !== '').length;
            },
            dir_of_kit: kit.dir,
            async memoryMb() {
              const status = await readFile(`/proc/${daemon.pid}/status`, 'utf8');
              return Math.round(Number(/^VmRSS:\s+(\d+)/mu.exec(status)?.[1]) / 1_024);
            },
            async inViewer(file, ...words) {
              const { stdout, stderr } = await start('viewer', [join(support, file), ...words]).ended;
              if (stdout === '') throw new Error(stderr);
              return JSON.parse(stdout) as unknown;
            },
            async sends(codec) {
              await run(
                'ip',
                ...lab.prefix('kit').slice(1),
                'curl',
                '-sf',
                '-d',
                '',
                `${media_api}/codec/${codec}`,
              );
            },
            stepsSince: (from_ms) =>
              server
                .output()
                .split('\n')
                .flatMap((line) => (line.startsWith('{') ? step.parse(JSON.parse(line)) : []))
                .filter(({ at_ms }) => at_ms >= from_ms),
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
  await page.addInitScript(traceVideo);
  await page.goto(`${service_url}/#key=${encodeURIComponent(key)}`);
  await page.locator('.asset-row', { hasText: 'Gate' }).waitFor();
  await page.goto(`${service_url}/#/k/${kit_id}/assets`);
  return { browser, page };
}

/** Runs in the page, before its scripts: keeps the steps of the player. */
function traceVideo(): void {
  const steps: Step[] = [];
  const note = (trace: string): void => {
    steps.push({ trace, at_ms: Math.round(performance.timeOrigin + performance.now()) });
  };
  Object.assign(globalThis, { steps });
  const send = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    if (typeof input !== 'string' || !input.includes('/whep')) return send(input, init);
    note(`viewer ${init?.method}`);
    const response = await send(input, init);
    note(`viewer has the answer to ${init?.method}`);
    return response;
  };
  const Peer = globalThis.RTCPeerConnection;
  globalThis.RTCPeerConnection = class extends Peer {
    constructor(configuration?: RTCConfiguration) {
      super(configuration);
      this.addEventListener('iceconnectionstatechange', () => note(`viewer ICE ${this.iceConnectionState}`));
      this.addEventListener('connectionstatechange', () => note(`viewer ${this.connectionState}`));
    }
  };
  document.addEventListener('loadeddata', () => note('first picture'), true);
}

/** Milliseconds from the first request for video to its first picture. */
async function firstPicture({ kit_id, asset_id, stepsSince }: Scene, page: Page): Promise<number> {
  await page.evaluate(() => void (Reflect.get(globalThis, 'steps') as Step[]).splice(0));
  await page.goto(`${service_url}/#/k/${kit_id}/a/${asset_id}`);
  const shown = page.locator('.video .rec').waitFor({ timeout: 60_000 });
  // What came until then is printed, also of one that failed.
  await shown.catch(() => undefined);
  const seen = step.array().parse(await page.evaluate((): unknown => Reflect.get(globalThis, 'steps')));
  const from_ms = seen[0]?.at_ms ?? 0;
  const all = [...seen, ...stepsSince(from_ms)].toSorted((a, b) => a.at_ms - b.at_ms);
  console.log(all.map(({ trace, at_ms }) => `${at_ms - from_ms} ms ${trace}`).join('\n'));
  await shown;
  return (seen.find(({ trace }) => trace === 'first picture')?.at_ms ?? Number.NaN) - from_ms;
}

async function leave(scene: Scene, page: Page): Promise<void> {
  expect(await scene.viewers()).toBe(1);
  await page.goto(`${service_url}/#/k/${scene.kit_id}/assets`);
  await eventually('the kit sends nothing more', async () => (await scene.viewers()) === 0);
}

const minutes = 60_000;
const shownText = z.object({ text: z.string(), width: z.number() });
const came = z.object({ seen: z.int(), faults: z.array(z.string()) });

describe.skipIf(
  rootMissing() ||
    peerMissing('mosquitto', 'turnserver', 'chromium-headless-shell', 'nft', 'curl', 'gst-inspect-1.0'),
)('video through two NATs', () => {
  it(
    'comes over TURN, also by TCP, and leaves no stream and no secret behind',
    { timeout: 5 * minutes },
    async () => {
      await withScene({}, async (scene) => {
        expect(await scene.viewers()).toBe(0);
        const { browser, page } = await openConsole(scene);
        try {
          const by_udp = [];
          for (let n = 0; n < 3; n += 1) {
            by_udp.push(await firstPicture(scene, page));
            await leave(scene, page);
          }
          await scene.lab.blockUdp('viewer');
          const by_tcp = await firstPicture(scene, page);
          await leave(scene, page);
          console.log(`first picture: ${by_udp.join(', ')} ms over UDP, ${by_tcp} ms over TCP`);
          for (const hidden of [secret, scene.key]) expect(scene.logs()).not.toContain(hidden);
        } finally {
          await browser.close();
        }
      });
    },
  );

  it('comes over TCP where the kit, or both networks, let no UDP out', { timeout: 5 * minutes }, async () => {
    await withScene({ kitRelays: true }, async (scene) => {
      const { browser, page } = await openConsole(scene);
      try {
        await scene.lab.blockUdp('kit');
        const at_kit = await firstPicture(scene, page);
        await leave(scene, page);
        await scene.lab.blockUdp('viewer');
        const at_both = await firstPicture(scene, page);
        await leave(scene, page);
        console.log(`first picture without UDP: ${at_kit} ms at the kit, ${at_both} ms at both`);
        for (const hidden of [secret, scene.key]) expect(scene.logs()).not.toContain(hidden);
      } finally {
        await browser.close();
      }
    });
  });

  it('shows in Firefox what it can play, and says what it lacks', { timeout: 8 * minutes }, async () => {
    await withScene({}, async (scene) => {
      const { kit_id, asset_id, key } = scene;
      const pages = [
        `${service_url}/#key=${encodeURIComponent(key)}`,
        `${service_url}/#/k/${kit_id}/a/${asset_id}`,
      ];
      const h264 = shownText.parse(await scene.inViewer('service/firefox-process.ts', ...pages));
      console.log(`Firefox with H.264: ${h264.text}`);
      expect(h264.text).toMatch(/^Live$|no H\.264 decoder/u);
      await scene.sends('VP8');
      const vp8 = shownText.parse(await scene.inViewer('service/firefox-process.ts', ...pages));
      expect(vp8).toEqual({ text: 'Live', width: 320 });
      await eventually('the kit sends nothing more', async () => (await scene.viewers()) === 0);
    });
  });

  it('serves 50 viewers that come and go, and keeps nothing of them', { timeout: 10 * minutes }, async () => {
    await withScene({}, async (scene) => {
      const { kit_id, asset_id, key, dir_of_kit, memoryMb, relays } = scene;
      const whep = `${service_url}/api/kits/${kit_id}/assets/${asset_id}/whep`;
      const memory_mb = [];
      for (const count of [10, 40]) {
        const { seen, faults } = came.parse(
          await scene.inViewer('cameras/viewers-process.ts', whep, key, String(count)),
        );
        expect({ seen, faults }).toEqual({ seen: count, faults: [] });
        expect(await relays()).toBeGreaterThan(0);
        // Those who went without a word have 30 s.
        await eventually('the kit sends nothing more', async () => (await scene.viewers()) === 0, 60_000);
        memory_mb.push(await memoryMb());
      }
      console.log(`memory of the kit after 10 and 50 viewers: ${memory_mb.join(', ')} MB`);
      await eventually('the kit has no viewer', async () =>
        (await readFile(join(dir_of_kit, 'state/video.json'), 'utf8')).includes('"viewers":[]'),
      );
      await eventually(
        'the TURN server relays nothing more',
        async () => (await relays()) === 0,
        2 * minutes,
      );
    });
  });

  it('sends what the budget of a metered link allows, within 5 %', { timeout: 5 * minutes }, async () => {
    const mb_max = 2;
    await withScene({ config: { video: { mb_max, seconds_max: 3_600 } } }, async (scene) => {
      const { browser, page } = await openConsole(scene);
      try {
        const before = await scene.lab.udpBytesOfKit();
        await firstPicture(scene, page);
        await eventually('the kit has ended it', async () => (await scene.viewers()) === 0, 2 * minutes);
        const used_mb = ((await scene.lab.udpBytesOfKit()) - before) / 1e6;
        console.log(`of a budget of ${mb_max} MB, ${used_mb.toFixed(3)} MB left by the wire`);
        expect(used_mb).toBeGreaterThan(mb_max * 0.95);
        expect(used_mb).toBeLessThan(mb_max * 1.05);
        await page.getByText('is used up (2 MB)').waitFor();
      } finally {
        await browser.close();
      }
    });
  });
});
