/** A kit that is enrolled at a broker by nothing but the lines that `service enrol` prints, and its setup. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connectAsync, type MqttClient } from 'mqtt';
import { expect, it } from 'vitest';
import { broker_kinds } from '../../../src/cli/service/broker-steps.ts';
import { runProgram } from '../../../src/cli/program.ts';
import { startMosquitto } from '../../support/brokers/broker.ts';
import { startRabbitmq } from '../../support/brokers/rabbitmq.ts';
import { type Certificates, makeCertificates } from '../../support/certificates.ts';
import { peerMissing } from '../../support/peers.ts';
import { testDirectory } from '../../support/test-directory.ts';
import { recordedShell } from '../../unit/cli/shell-of-test.ts';

const kit_id = '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10';
const other_id = '9d0e0f6e-52a4-4c0e-9d6b-1f2a7c9e4b11';

async function typed(...words: readonly string[]) {
  const shell = recordedShell({ env: { PATH: process.env['PATH'] } });
  return { code: await runProgram(words, shell), out: shell.stdout(), err: shell.stderr() };
}

interface Running {
  readonly url: string;
  readonly stop: () => Promise<void>;
}

/** Starts a broker with the lines that were printed. */
type Start = (certificates: Certificates, lines: readonly string[]) => Promise<Running>;

const mosquitto: Start = async ({ ca, server }, lines) => {
  const isConf = (line: string): boolean => /^(?:cafile|require_|use_)/u.test(line);
  const authority = lines.find((line) => line.startsWith('cafile '))?.slice('cafile '.length);
  const login = /^mosquitto_passwd .* '(.+)'$/mu.exec(lines.join('\n'))?.[1];
  return startMosquitto({
    tls: { ca: authority ?? ca, pair: server },
    conf: lines.filter((line) => isConf(line) && !line.startsWith('cafile')),
    acl: lines.filter((line) => /^(?:user|topic) /u.test(line)).join('\n'),
    ...(login === undefined ? {} : { passwords: { [kit_id]: login } }),
  });
};

const rabbitmq: Start = async (certificates, lines) => {
  const broker = await startRabbitmq(
    certificates,
    lines.filter((line) => / = /u.test(line)),
  );
  for (const line of lines.filter((each) => each.startsWith('rabbitmqctl '))) await broker.ctl(line);
  return { url: `mqtts://localhost:${broker.tls_port}`, stop: async () => broker.stop() };
};

/** Mosquitto reports what it refuses with MQTT 5. */
async function refusesByCode(client: MqttClient, topic: string): Promise<boolean> {
  return client.publishAsync(topic, '{}', { qos: 1 }).then(
    () => false,
    (error: unknown) => /not authorized/iu.test(String(error)),
  );
}

/** RabbitMQ ends the connection. */
async function refusesByClosing(client: MqttClient, topic: string): Promise<boolean> {
  const closed = new Promise<boolean>((resolve) => client.once('close', () => resolve(true)));
  client.publish(topic, '{}', { qos: 1 });
  return closed;
}

const brokers = [
  {
    kind: 'mosquitto',
    start: mosquitto,
    protocolVersion: 5,
    refuses: refusesByCode,
    isMissing: peerMissing('mosquitto', 'mosquitto_passwd', 'openssl'),
  },
  {
    kind: 'rabbitmq',
    start: rabbitmq,
    protocolVersion: 4,
    refuses: refusesByClosing,
    isMissing: peerMissing('rabbitmq-server', 'epmd', 'openssl'),
  },
] as const;

for (const { kind, start, protocolVersion, refuses, isMissing } of brokers) {
  it.skipIf(isMissing).for([['--days', '30'], ['--password']])(
    `${kind} takes the kit that was enrolled with %s, and no topic of another`,
    async (flags) => {
      const dir = await testDirectory();
      const certificates = await makeCertificates(dir, 'unused');
      const file = join(dir, 'seven.kit');
      const words = [
        '--broker',
        'mqtts://localhost:1',
        '--kit-id',
        kit_id,
        '--ca',
        certificates.ca,
        '--broker-kind',
        kind,
      ];
      const place = ['--authority', join(dir, 'authority'), '--out', file];
      const made = await typed('service', 'enrol', 'Kit 7', ...words, ...place, ...flags);
      expect(made.code).toBe(0);
      const lines = made.out.split('\n').flatMap((line) => (line.startsWith('  ') ? [line.trim()] : []));
      const broker = await start(certificates, lines);
      try {
        const enrolment = JSON.parse(await readFile(file, 'utf8')) as Record<string, string>;
        await writeFile(file, JSON.stringify({ ...enrolment, broker: broker.url }));
        await mkdir(join(dir, 'kit'));
        const config = join(dir, 'kit/config.yaml');
        const set = await typed('setup', '-c', config, '--from', file, '--scan', '0', '--no-ask');
        expect([set.code, set.out]).toEqual([0, expect.stringContaining('ok    broker login: MQTT ')]);
        expect(set.out).not.toMatch(/^ +fail/mu);
        const { cert = '', key = '', password } = enrolment;
        const login = password === undefined ? { cert, key } : { username: kit_id, password };
        const client = await connectAsync(broker.url, {
          protocolVersion,
          clientId: kit_id,
          ca: await readFile(certificates.ca),
          ...login,
          reconnectPeriod: 0,
        });
        await client.subscribeAsync(`k1/${kit_id}/down/#`, { qos: 1 });
        await client.publishAsync(`k1/${kit_id}/up/telemetry`, '{}', { qos: 1 });
        expect(await refuses(client, `k1/${other_id}/up/telemetry`)).toBe(true);
        await client.endAsync(true);
      } finally {
        await broker.stop();
      }
    },
  );
}

it('names the lines of each broker where none is chosen', async () => {
  const dir = await testDirectory();
  const { out } = await typed(
    'service',
    'enrol',
    'Kit 7',
    '--broker',
    'mqtts://localhost:1',
    '--password',
    '--out',
    join(dir, 'k.kit'),
  );
  for (const kind of broker_kinds) expect(out).toContain(`for ${kind}:`);
  // The form of docs.emqx.com: a tuple with a full stop in acl.conf, and the REST API that takes a password as it is.
  expect(out).toMatch(
    /^ {2}\{allow, \{username, "[0-9a-f-]{36}"\}, publish, \["k1\/[0-9a-f-]{36}\/up\/#"\]\}\.$/mu,
  );
  const body = /-d '(\{.*\})' http/u.exec(out)?.[1] ?? '';
  expect(JSON.parse(body)).toEqual({
    user_id: expect.any(String) as unknown,
    password: expect.any(String) as unknown,
  });
});
