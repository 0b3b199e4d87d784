/** The images of gateway and service in containers: read-only, as users of their own, stopped by SIGTERM, with a real health check. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, chown, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { SimVehicle } from '../../drivers/mavlink/sim/sim-vehicle.ts';
import { texts as cli_texts } from '../../src/cli/texts.ts';
import { texts as outbox_texts } from '../../src/kit/outbox/texts.ts';
import { buildPackages } from '../../systemd/package/build.ts';
import { tagOf } from '../../systemd/package/images.ts';
import { targetNamed } from '../../systemd/package/target.ts';
import { type Broker, startMosquitto } from '../support/brokers/broker.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgres } from '../support/database/postgres.ts';
import { dyingWithUs, peerMissing, program } from '../support/peers.ts';
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
/** What the test takes from it. */
const composeFile = z.looseObject({
  services: z.looseObject({ service: z.looseObject({ secrets: z.array(z.string()) }) }),
  secrets: z.record(z.string(), z.object({ file: z.string() })),
});
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
      const log = await podman.run('logs', name);
      expect(log).not.toContain(first_key);
      expect(log.split('\n').filter((line) => !line.startsWith('{'))).toEqual([]);
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

  it.skipIf(peerMissing('caddy', 'postgres', 'initdb', 'openssl', 'mosquitto_pub', 'curl', 'bash'))(
    'the parts of compose.yaml, prepared as its page says, serve browsers and kits over TLS',
    async () => {
      const dir = await makeDirectory();
      const sample = join(import.meta.dirname, '../../systemd/container');
      const help = await readFile(join(import.meta.dirname, '../../src/help/containers.md'), 'utf8');
      const compose = composeFile.parse(parse(await readFile(join(sample, 'compose.yaml'), 'utf8')));
      const ports = {
        mqtt: await freePort(),
        service: await freePort(),
        http: await freePort(),
        caddy: await freePort(),
        metrics: await freePort(),
      };
      const database = await startPostgres();
      const children: ChildProcess[] = [];
      let said = '';
      /** A file of the sample with the addresses of this machine in place of those of the network of compose. */
      const taken = async (name: string, changes: Readonly<Record<string, string>>): Promise<string> => {
        const text = await readFile(join(sample, name), 'utf8');
        const changed = Object.entries(changes).reduce((all, [from, to]) => all.replaceAll(from, to), text);
        await writeFile(join(dir, name), changed);
        return join(dir, name);
      };
      const begin = (command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): void => {
        const [first = '', ...rest] = [...dyingWithUs(), program(command), ...args];
        const child = spawn(first, rest, {
          env: { ...process.env, ...env },
          stdio: ['ignore', 'pipe', 'pipe'],
        });
        for (const stream of [child.stdout, child.stderr])
          stream.on('data', (chunk: Buffer) => (said += chunk.toString()));
        children.push(child);
      };
      try {
        const [prepare = '', owners = ''] = [...help.matchAll(/^```sh\n(.*?)^```$/gmsu)].map(
          ([, block = '']) => block,
        );
        const owning = owners.split('\n').filter((line) => /^ch(?:own|mod)/u.test(line));
        await run('bash', '-euc', `cd ${dir}\n${prepare}\n${owning.join('\n')}`);
        await writeFile(join(dir, 'secrets/database-password'), database.password);
        await taken('service.yaml', {
          'mosquitto:8884': `mosquitto:${ports.service}`,
          'kits@postgres:5432/kits': (await database.newDatabase('kits')).replace('postgres://', ''),
          '0.0.0.0:8080': `0.0.0.0:${ports.http}`,
          '0.0.0.0:9464': `0.0.0.0:${ports.metrics}`,
        });
        const options = [
          '--add-host=mosquitto:127.0.0.1',
          `--volume=${dir}/service.yaml:/etc/kit-connector-service/service.yaml:ro`,
          ...compose.services.service.secrets.map(
            (name) => `--volume=${join(dir, compose.secrets[name]?.file ?? '')}:/run/secrets/${name}:ro`,
          ),
        ];
        const enrol =
          /service enrol (.*)$/mu.exec(owners)?.[1]?.replaceAll("'", '').replace('Kit 1', 'Kit-1') ?? '';
        await podman.once(
          image(service),
          [...options, `--volume=${dir}/authority:/authority`],
          ['service', 'enrol', ...enrol.split(' ')],
        );
        const kit = z
          .object({ kit_id: z.uuid(), cert: z.string(), key: z.string() })
          .parse(JSON.parse(await readFile(join(dir, 'authority/Kit-1.kit'), 'utf8')));
        await writeFile(join(dir, 'kit.crt'), kit.cert);
        await writeFile(join(dir, 'kit.key'), kit.key);

        const acl = join(import.meta.dirname, '../../systemd/broker/mosquitto.acl');
        const conf = await taken('mosquitto.conf', {
          'listener 8883': `listener ${ports.mqtt} 127.0.0.1`,
          'listener 8884': `listener ${ports.service} 127.0.0.1`,
          '/mosquitto/config/kits-ca.crt': `${dir}/authority/ca.crt`,
          '/mosquitto/config/kit-connector.acl': acl,
          '/mosquitto/data/': `${dir}/`,
          '/mosquitto/': `${dir}/`,
        });
        await appendFile(conf, 'user root\n');
        begin('mosquitto', ['-c', conf]);
        const caddyfile = await taken('Caddyfile', {
          'service:8080': `127.0.0.1:${ports.http}`,
          '\tlog default': '\tadmin off\n\tskip_install_trust\n\tauto_https disable_redirects\n\tlog default',
        });
        begin('caddy', ['run', '--adapter', 'caddyfile', '--config', caddyfile], {
          KITS_HOST: `localhost:${ports.caddy}`,
          XDG_DATA_HOME: dir,
          XDG_CONFIG_HOME: dir,
        });
        const authority = join(dir, 'caddy/pki/authorities/local/root.crt');
        const key = (await readFile(join(dir, 'secrets/first-key'), 'utf8')).trim();
        const asked = async (path: string): Promise<string> =>
          run(
            'curl',
            '-sS',
            '--fail',
            '--cacert',
            authority,
            '-H',
            `X-API-Key: ${key}`,
            `https://localhost:${ports.caddy}${path}`,
          );
        await eventually('the proxy answers', async () => {
          await asked('/ready').catch(() => '');
          return said.includes('connection refused');
        });
        await podman.start('compose', image(service), options);
        await eventually(
          'it is ready behind the proxy',
          async () => (await asked('/ready').catch(() => '')).includes('true'),
          60_000,
        );
        const to = [
          '-h',
          '127.0.0.1',
          '-p',
          String(ports.mqtt),
          '--cafile',
          join(dir, 'secrets/ca.crt'),
          '--insecure',
        ];
        const login = ['--cert', join(dir, 'kit.crt'), '--key', join(dir, 'kit.key'), '-i', kit.kit_id];
        const state = JSON.stringify({
          time: new Date().toISOString(),
          epoch: 1,
          seq: 1,
          data: { online: true },
        });
        await run(
          'mosquitto_pub',
          ...to,
          ...login,
          '-q',
          '1',
          '-t',
          `k1/${kit.kit_id}/up/state`,
          '-m',
          state,
        );
        await eventually('the kit is known', async () => (await asked('/api/kits')).includes(kit.kit_id));
        const token = (await readFile(join(dir, 'secrets/metrics-token'), 'utf8')).trim();
        const figures = async (headers: Record<string, string>): Promise<number> =>
          (await fetch(`http://127.0.0.1:${ports.metrics}/metrics`, { headers })).status;
        expect([await figures({}), await figures({ authorization: `Bearer ${token}` })]).toEqual([401, 200]);
        // While the service was not there yet, the proxy has logged the requests of the holder of the key.
        expect(said).toMatch(/connection refused/u);
        expect(said).not.toContain(key);
        expect(await podman.run('healthcheck', 'run', 'compose')).toBe('');
      } catch (error) {
        console.info(said);
        throw error;
      } finally {
        await podman.run('rm', '--force', '--time=20', 'compose');
        for (const child of children) {
          const ended = once(child, 'exit');
          child.kill();
          await ended;
        }
        await database.stop();
        await rm(dir, { recursive: true, force: true });
      }
    },
  );
});
