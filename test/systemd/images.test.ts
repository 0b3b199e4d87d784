/** The images of gateway and service in containers: read-only, as users of their own, stopped by SIGTERM, with a real health check. */
import { chown, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { SimVehicle } from '../../drivers/mavlink/sim/sim-vehicle.ts';
import { texts as cli_texts } from '../../src/cli/texts.ts';
import { texts as outbox_texts } from '../../src/kit/outbox/texts.ts';
import { buildPackages } from '../../systemd/package/build.ts';
import { tagOf } from '../../systemd/package/images.ts';
import { targetNamed } from '../../systemd/package/target.ts';
import { type Broker, startMosquitto } from '../support/brokers/broker.ts';
import { eventually } from '../support/eventually.ts';
import { peerMissing } from '../support/peers.ts';
import { freePort } from '../support/ports.ts';
import { type Podman, podmanMissing, startPodman } from '../support/systemd/podman.ts';
import { makeDirectory, run } from '../support/temporary.ts';

const out = join(import.meta.dirname, '../../dist/test-images');
const version = '0.2.1~7.g1a2b3c4';
const kit_id = '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10';
const first_key = 'kc_5f1e0c9a77b2_9d3c1f70a4be52e86c1b0f9d7a34e5c2';
const [gateway, service] = ['kit-connector', 'kit-connector-service'] as const;
const [gateway_uid, service_uid] = [10_001, 10_002];
const image = (name: string): string => `localhost/${name}:${tagOf(version)}`;

const config = z.object({
  User: z.string(),
  Volumes: z.record(z.string(), z.unknown()),
  Labels: z.record(z.string(), z.string()),
  StopSignal: z.string(),
  Healthcheck: z.object({ Test: z.array(z.string()) }),
});
const assets = z.object({ assets: z.array(z.looseObject({ id: z.string(), type: z.string() })) });
const task = z.looseObject({ id: z.string(), status: z.string() });

const isMissing = podmanMissing() || peerMissing('x86_64-linux-gnu-strip', 'mosquitto', 'dpkg-deb');

describe.skipIf(isMissing)('the images', () => {
  const dirs = { podman: '', etc: '' };
  let podman: Podman;
  let broker: Broker;
  let drone: AbortController;
  let url = '';

  beforeAll(async () => {
    const target = targetNamed((await run('dpkg', '--print-architecture')).trim());
    const files = await buildPackages({ target, version, out, compression: 'none', images: true });
    [dirs.podman, dirs.etc] = [await makeDirectory(), await makeDirectory()];
    podman = await startPodman(dirs.podman);
    for (const file of files.filter((name) => name.endsWith('.tar'))) {
      await podman.run('load', '--quiet', '--input', file);
      console.info(`${file}: ${Math.round((await stat(file)).size / 1e6)} MB`);
    }
    broker = await startMosquitto();
    const [port, metrics_port, vehicle_port] = [await freePort(), await freePort(), await freePort()];
    url = `http://127.0.0.1:${port}`;
    await place('service.yaml', service_uid, [
      `broker: { url: '${broker.url}' }`,
      `listen: 0.0.0.0:${port}`,
      'first_key_file: /run/secrets/first-key',
      `metrics: { listen: '0.0.0.0:${metrics_port}', token_file: /run/secrets/metrics-token }`,
    ]);
    await place('secrets/first-key', service_uid, [first_key]);
    await place('secrets/metrics-token', service_uid, ['9c41f0d7be2a65839c41f0d7be2a6583']);
    await place('config.yaml', gateway_uid, [
      `kit_id: ${kit_id}`,
      `broker: { url: '${broker.url}' }`,
      'drivers:',
      '  - driver: gateway',
      '  - driver: mavlink',
      `    options: { links: [{ kind: udp_listen, port: ${vehicle_port}, host: 127.0.0.1 }] }`,
    ]);
    drone = new AbortController();
    const home = { lat: 47.397742, lon: 8.545594, alt_amsl_m: 488 };
    const about = { autopilot: 'ardupilot', sysid: 1, uid: '00000000000de301', airborne: true } as const;
    await new SimVehicle({ ...about, host: '127.0.0.1', port: vehicle_port, home }, drone.signal).start();
  });
  afterAll(async () => {
    drone?.abort();
    await podman?.stop();
    await broker?.stop();
    for (const dir of Object.values(dirs)) await rm(dir, { recursive: true, force: true });
  });

  /** As secrets of engines are: of root, and readable by the group of the image. */
  async function place(name: string, gid: number, lines: readonly string[]): Promise<void> {
    const file = join(dirs.etc, name);
    await mkdir(join(file, '..'), { recursive: true });
    await writeFile(file, `${lines.join('\n')}\n`, { mode: 0o440 });
    await chown(file, 0, gid);
  }
  const mounts = {
    [service]: [
      `--volume=${service}:/var/lib/${service}`,
      '--volume=ETC/service.yaml:/etc/kit-connector-service/service.yaml:ro',
      '--volume=ETC/secrets:/run/secrets:ro',
    ],
    [gateway]: [
      `--volume=${gateway}:/var/lib/${gateway}`,
      '--volume=ETC/config.yaml:/etc/kit-connector/config.yaml:ro',
    ],
  } as const;
  const start = async (name: typeof gateway | typeof service, ...more: readonly string[]): Promise<void> =>
    podman.start(name, image(name), [...mounts[name].map((each) => each.replace('ETC', dirs.etc)), ...more]);
  const healthOf = async (name: string): Promise<string> =>
    podman.run('healthcheck', 'run', name).catch((error: unknown) => `unhealthy: ${String(error)}`);
  const ask = async (path: string, body?: object): Promise<unknown> => {
    const headers = { 'x-api-key': first_key, 'content-type': 'application/json' };
    const answer = await fetch(
      url + path,
      body ? { method: 'POST', headers, body: JSON.stringify(body) } : { headers },
    );
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };

  it.each([
    [gateway, gateway_uid, ['/run/kit-connector', '/var/lib/kit-connector']],
    [service, service_uid, ['/var/lib/kit-connector-service']],
  ])(
    '%s names version, revision and licence, its user by number, its volumes and its check',
    async (name, uid, volumes) => {
      const [inspected] = z
        .array(
          z.object({ Config: config.omit({ Healthcheck: true }), Healthcheck: config.shape.Healthcheck }),
        )
        .parse(JSON.parse(await podman.run('image', 'inspect', image(name))));
      const { User, Volumes, Labels, StopSignal } = inspected?.Config ?? config.parse({});
      expect([User, StopSignal, Object.keys(Volumes).toSorted()]).toEqual([
        `${uid}:${uid}`,
        'SIGTERM',
        volumes,
      ]);
      const label = (key: string): string | undefined => Labels[`org.opencontainers.image.${key}`];
      expect([label('version'), label('licenses')]).toEqual([version, 'MIT']);
      expect(label('revision')).toMatch(/^[0-9a-f]{40}$/u);
      expect(inspected?.Healthcheck.Test).toEqual(expect.arrayContaining(['CMD', 'health', '--config']));
    },
  );

  it('exchange a task, from the REST interface to the drone and back', async () => {
    await start(service);
    await start(gateway);
    await eventually(
      'the kit is online with its drone',
      async () => {
        const { assets: found } = assets.parse(
          await ask(`/api/kits/${kit_id}/assets`).catch(() => ({ assets: [] })),
        );
        return found.some(({ type }) => type === 'drone');
      },
      60_000,
    );
    const { assets: found } = assets.parse(await ask(`/api/kits/${kit_id}/assets`));
    const drone_id = found.find(({ type }) => type === 'drone')?.id ?? '';
    const { id } = task.parse(await ask(`/api/kits/${kit_id}/assets/${drone_id}/commands/hold`, {}));
    await eventually(
      'the task is completed',
      async () => {
        const now = task.parse(await ask(`/api/kits/${kit_id}/tasks/${id}`));
        if (now.status === 'failed') throw new Error(JSON.stringify(now));
        return now.status === 'completed';
      },
      60_000,
    );
  });

  it.each([
    [gateway, gateway_uid],
    [service, service_uid],
  ])('%s runs as the user of its own, without capabilities, as the first process', async (name, uid) => {
    const status = await readFile(`/proc/${await podman.pidOf(name)}/status`, 'utf8');
    expect(status).toMatch(new RegExp(`^Uid:\\t${uid}\\t${uid}`, 'mu'));
    expect(status).toMatch(/^CapBnd:\t0+$/mu);
    expect(status).toMatch(/^NSpid:\t\d+\t1$/mu);
    console.info(`${name}: resident ${/^VmRSS:\s+(\d+)/mu.exec(status)?.[1]} kB`);
  });

  it.each([gateway, service])(
    'the health of %s is good, bad while it makes no progress, and good again',
    async (name) => {
      expect(await healthOf(name)).not.toContain('unhealthy');
      await podman.run('kill', '--signal=STOP', name);
      expect(await healthOf(name)).toContain('unhealthy');
      await podman.run('kill', '--signal=CONT', name);
      await eventually('it is healthy', async () => !(await healthOf(name)).includes('unhealthy'));
    },
  );

  it('a task, the first key and the id survive new containers, which SIGTERM ends cleanly and soon', async () => {
    for (const name of [gateway, service]) {
      const began_ms = performance.now();
      await podman.run('stop', '--time=20', name);
      const ended = await podman.run('inspect', '--format={{.State.ExitCode}}', name);
      console.info(`${name} stopped in ${Math.round(performance.now() - began_ms)} ms`);
      expect(ended).toBe('0');
      expect(await podman.run('logs', name)).not.toContain(first_key);
      await podman.run('rm', name);
    }
    await start(service);
    await eventually('the task is known', async () =>
      JSON.stringify(await ask(`/api/kits/${kit_id}/tasks`).catch(() => [])).includes('completed'),
    );
    expect(await podman.run('logs', service)).not.toContain(cli_texts.first_key_added);
  });

  it('a folder that the user may not write is named with the remedy, and messages are kept in memory', async () => {
    const folder = await makeDirectory();
    try {
      const options = mounts[gateway].slice(1).map((each) => each.replace('ETC', dirs.etc));
      await podman.start('stranger', image(gateway), [
        `--volume=${folder}:/var/lib/kit-connector`,
        ...options,
      ]);
      const remedy = outbox_texts.not_the_owner('/var/lib/kit-connector', gateway_uid);
      await eventually('it is said', async () =>
        (await podman.run('logs', 'stranger')).includes(remedy.replaceAll('"', '\\"')),
      );
      expect(await healthOf('stranger')).not.toContain('unhealthy');
    } finally {
      await podman.run('rm', '--force', 'stranger');
      await rm(folder, { recursive: true, force: true });
    }
  });
});
