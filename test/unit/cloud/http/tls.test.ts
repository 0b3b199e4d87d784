/** The service speaks TLS itself: real handshakes with certificates that are made for the test. */
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request as plainRequest } from 'node:http';
import { request, type RequestOptions } from 'node:https';
import { connect as dial, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect, type ConnectionOptions } from 'node:tls';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { tlsOf, tlsSource } from '../../../../src/kit/config/service-tls.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { address_connections_max } from '../../../../src/cloud/http/server/http-server.ts';
import { type Certificates, makeCertificates } from '../../../support/certificates.ts';
import { kit_id, samples } from '../../../support/contract-samples.ts';
import { eventually } from '../../../support/eventually.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import { texts } from '../../../../src/cloud/texts.ts';

let dir: string;
let ours: Certificates;
/** Of another authority. */
let theirs: Certificates;
let lab: ServiceLab;
const opened: Socket[] = [];
beforeAll(async () => {
  dir = await makeDirectory();
  await Promise.all(['ours', 'theirs', 'live'].map(async (name) => mkdir(join(dir, name))));
  ours = await makeCertificates(join(dir, 'ours'), 'machine 7');
  theirs = await makeCertificates(join(dir, 'theirs'), 'machine 7');
});
afterAll(async () => rm(dir, { recursive: true, force: true }));

const live = (name: string): string => join(dir, 'live', name);
/** Puts this pair where the service reads its own. */
async function install({ cert, key }: Certificates['server']): Promise<void> {
  await rm(live('key'), { force: true });
  await copyFile(key, live('key'));
  await copyFile(cert, live('cert'));
}
/** In one step: a file that is being written is empty for a moment, which is a fault of its own. */
async function replace(cert: string | Buffer): Promise<void> {
  await writeFile(live('next'), cert);
  await rename(live('next'), live('cert'));
}
async function start(client_certificates?: 'required' | 'optional', client_ca_file = ours.ca): Promise<void> {
  const ca = client_certificates ? { client_ca_file, client_certificates } : {};
  const source = tlsSource(tlsOf({ cert_file: 'cert', key_file: 'key', ...ca }, live('')));
  lab = await startServiceLab(kit_id, { tls: source && { ...source, reload_every_ms: 20 } });
}
beforeEach(async () => install(ours.server));
afterEach(async () => {
  for (const socket of opened.splice(0)) socket.destroy();
  await lab.stop();
});

/** What a client makes of a connection that the server cut. */
const cut = /socket hang up|ECONNRESET|EPIPE|alert|disconnected before/u;

const at = () => ({ host: '127.0.0.1', port: Number(new URL(lab.url).port) });
const trust = async () => ({ ca: await readFile(ours.ca), servername: 'localhost' });
async function pair({ cert, key }: Certificates['client']) {
  return { cert: await readFile(cert), key: await readFile(key) };
}

interface Answer {
  readonly status: number | undefined;
  readonly headers: IncomingMessage['headers'];
}
async function ask(options: RequestOptions = {}, body?: object): Promise<Answer> {
  const asked = request(`${lab.url}${options.path ?? '/ready'}`, {
    ...(await trust()),
    agent: false,
    ...options,
  });
  asked.end(body && JSON.stringify(body));
  const [response] = (await once(asked, 'response')) as [IncomingMessage];
  response.resume();
  return { status: response.statusCode, headers: response.headers };
}
/** The serial number of the certificate that a new connection is shown. */
async function shown(): Promise<string> {
  const socket = connect({ ...at(), ...(await trust()) });
  opened.push(socket);
  await once(socket, 'secureConnect');
  const { serialNumber } = socket.getPeerCertificate();
  socket.destroy();
  return serialNumber;
}

/** One request in a session of TLS; no text: the connection was cut. */
async function visit(options: ConnectionOptions) {
  const socket = connect({ ...at(), ...(await trust()), ...options });
  opened.push(socket);
  const sessions: Buffer[] = [];
  let text = '';
  let isReused = false;
  socket.on('session', (each: Buffer) => sessions.push(each));
  socket.on('error', () => undefined);
  socket.on('secureConnect', () => {
    isReused = socket.isSessionReused();
  });
  socket.on('data', (bytes: Buffer) => {
    text += bytes.toString();
  });
  socket.write('GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
  await new Promise((resolve) => {
    socket.once('close', resolve);
  });
  return { text, sessions, isReused };
}

it('answers over TLS from version 1.2 on, and neither plain HTTP nor TLS 1.1', async () => {
  await start();
  expect(lab.url).toMatch(/^https:/u);
  expect(await ask()).toMatchObject({ status: 200 });
  expect(await ask({ maxVersion: 'TLSv1.2' })).toMatchObject({ status: 200 });
  const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
  await expect(ask(old)).rejects.toThrow(/protocol version|handshake failure/u);
  const plain = plainRequest({ ...at(), path: '/ready', agent: false });
  plain.end();
  await expect(once(plain, 'response')).rejects.toThrow(cut);
});

it('marks the cookie of the session as Secure, also when no proxy reports TLS', async () => {
  await start();
  const headers = { 'content-type': 'application/json' };
  const path = '/api/session';
  const { status, headers: answer } = await ask({ method: 'POST', path, headers }, { api_key: lab.key });
  expect(status).toBe(204);
  expect(answer['set-cookie']?.[0]).toMatch(/; Secure$/u);
});

it('serves WebSockets over TLS', async () => {
  await start('required');
  await lab.publish(channels.state, samples['kitState'] ?? {});
  const own = { ...(await trust()), ...(await pair(ours.client)), headers: { 'x-api-key': lab.key } };
  const socket = new WebSocket(`${lab.url.replace('http', 'ws')}/api/kits/${kit_id}/ws`, ['kit.v1'], own);
  await once(socket, 'open');
  socket.send(JSON.stringify({ type: 'subscribe', assets: '*' }));
  const [frame] = (await once(socket, 'message')) as [Buffer];
  expect(JSON.parse(frame.toString())).toMatchObject({ type: 'snapshot' });
  socket.terminate();
});

it('refuses clients without a certificate of the authority where one is required, and reports whose it was', async () => {
  await start('required');
  await expect(ask()).rejects.toThrow(cut);
  await expect(ask(await pair(theirs.client))).rejects.toThrow(cut);
  await expect(ask({ ...(await pair(theirs.client)), maxVersion: 'TLSv1.2' })).rejects.toThrow(cut);
  const refused = lab.log.lines.filter(({ level }) => level === 'warn').map(({ facts }) => facts);
  expect(refused).toMatchObject([
    { address: '127.0.0.1', reason: 'no certificate' },
    { subject: 'CN=machine 7', reason: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' },
    { subject: 'CN=machine 7', reason: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' },
  ]);
  const { fingerprint256 } = new X509Certificate(await readFile(theirs.client.cert));
  expect(refused[1]).toMatchObject({ fingerprint: fingerprint256 });
  expect(await ask(await pair(ours.client))).toMatchObject({ status: 200 });
});

it('asks for the API key of a client with a certificate, too', async () => {
  await start('required');
  const own = await pair(ours.client);
  const path = `/api/kits/${kit_id}`;
  expect(await ask({ ...own, path })).toMatchObject({ status: 401 });
  expect(await ask({ ...own, path: '/api/kits', headers: { 'x-api-key': lab.key } })).toMatchObject({
    status: 200,
  });
});

it('refuses an expired certificate of the authority', async () => {
  await start('required');
  await expect(ask(await pair(ours.expired))).rejects.toThrow(cut);
  expect(lab.log.lines.at(-1)?.facts).toMatchObject({ reason: 'CERT_HAS_EXPIRED' });
});

it('lets clients without a certificate in where it is optional, and none with a wrong one', async () => {
  await start('optional');
  expect(await ask()).toMatchObject({ status: 200 });
  expect(await ask(await pair(ours.client))).toMatchObject({ status: 200 });
  await expect(ask(await pair(theirs.client))).rejects.toThrow(cut);
});

it('takes over a renewed certificate without a restart, and leaves open connections alone', async () => {
  await start();
  const before = await shown();
  const long = connect({ ...at(), ...(await trust()) });
  opened.push(long);
  await once(long, 'secureConnect');
  await install(await ours.clientOf('renewed'));
  await eventually('the new certificate', async () => (await shown()) !== before);
  long.write('GET /ready HTTP/1.1\r\nHost: localhost\r\n\r\n');
  const [bytes] = (await once(long, 'data')) as [Buffer];
  expect(bytes.toString()).toMatch(/^HTTP\/1.1 200/u);
  expect(lab.log.at('info')).toEqual([texts.log_certificate_renewed]);
  expect(await ask({ maxVersion: 'TLSv1.2' })).toMatchObject({ status: 200 });
});

it('serves on with the old certificate while the new one is faulty, reports it once, and takes the next one', async () => {
  await start();
  const before = await shown();
  await replace('half of a certifi');
  await eventually('the fault', () => lab.log.at('warn').length > 0);
  expect(await shown()).toBe(before);
  await replace(await readFile(theirs.server.cert));
  await eventually('the other fault', () => lab.log.at('warn').length > 1);
  expect(await shown()).toBe(before);
  const faulty = lab.log.lines.filter(({ level }) => level === 'warn');
  expect(faulty.map(({ sentence }) => sentence)).toEqual(
    Array.from({ length: 2 }, () => texts.log_certificate_rejected),
  );
  expect(JSON.stringify(faulty)).toContain('not the key of the certificate');
  await install(await ours.clientOf('renewed-later'));
  await eventually('the new certificate', async () => (await shown()) !== before);
});

it.each(['TLSv1.2', 'TLSv1.3'] as const)(
  'asks for certificates of the new authority once it is renewed, also in sessions of %s that began before',
  async (maxVersion) => {
    const ca = live('ca');
    await copyFile(ours.ca, ca);
    await start('required', ca);
    const [own, other] = [await pair(ours.client), await pair(theirs.client)];
    const began = await visit({ ...own, maxVersion });
    expect(began.text).toMatch(/^HTTP\/1.1 200/u);
    const session = began.sessions.at(-1);
    expect(session).toBeDefined();
    expect(await visit({ ...own, maxVersion, session })).toMatchObject({ isReused: true });
    await expect(ask(other)).rejects.toThrow(cut);
    await copyFile(theirs.ca, ca);
    await eventually('the renewal', () => lab.log.at('info').length > 0);
    expect(await ask(other)).toMatchObject({ status: 200 });
    for (const shown of [own, {}]) {
      expect(await visit({ ...shown, maxVersion, session })).toMatchObject({ isReused: false, text: '' });
    }
  },
);

it('does not start with a certificate and a key that do not belong together', async () => {
  await start();
  await lab.stop();
  await copyFile(theirs.server.cert, live('cert'));
  const source = tlsSource(tlsOf({ cert_file: 'cert', key_file: 'key' }, live('')));
  await expect(startServiceLab(kit_id, { tls: source })).rejects.toThrow('not the key of the certificate');
});

it(
  'bounds the connections of one address before and after their handshake, and forgets closed ones',
  { tags: 'long' },
  async () => {
    await start();
    for (let n = 0; n < address_connections_max * 2; n += 1) {
      const socket = dial({ ...at(), localAddress: '127.0.0.9' });
      socket.on('error', () => undefined);
      opened.push(socket);
      await once(socket, 'connect');
    }
    const held = () => opened.filter((each) => !each.destroyed && each.readyState === 'open').length;
    await eventually('the rest is cut', () => held() === address_connections_max);
    for (let n = 0; n < address_connections_max * 2; n += 1) {
      expect(await ask({ localAddress: '127.0.0.10' })).toMatchObject({ status: 200 });
    }
    expect(lab.log.at('warn')).toHaveLength(1);
  },
);

it('keeps connections whose request is under way, and cuts idle ones for them', async () => {
  await start();
  const key = { 'x-api-key': lab.key };
  const socket = new WebSocket(`${lab.url.replace('http', 'ws')}/api/kits/${kit_id}/ws`, ['kit.v1'], {
    ...(await trust()),
    headers: key,
    localAddress: '127.0.0.9',
  });
  await once(socket, 'open');
  for (let n = 0; n < address_connections_max * 2; n += 1) {
    const idle = connect({ ...(await trust()), socket: dial({ ...at(), localAddress: '127.0.0.9' }) });
    idle.on('error', () => undefined);
    opened.push(idle);
    await once(idle, 'secureConnect');
  }
  expect(socket.readyState).toBe(WebSocket.OPEN);
  socket.terminate();
});

it('ends at once although handshakes are under way', async () => {
  await start();
  const socket = dial(at());
  opened.push(socket);
  await once(socket, 'connect');
  await eventually('the connection is taken', async () => (await ask()).status === 200);
  const closed = once(socket, 'close');
  await lab.stop();
  await closed;
});
