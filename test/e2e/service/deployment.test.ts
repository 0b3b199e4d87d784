/** The service as it is installed: `check` of its file, its process with metrics, and the samples for nginx and HAProxy in front. */
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { z } from 'zod';
import { type Broker, startMosquitto } from '../../support/brokers/broker.ts';
import { type Certificates, makeCertificates } from '../../support/certificates.ts';
import { type Child, startChild } from '../../support/child.ts';
import { kit_id } from '../../support/contract-samples.ts';
import { eventually } from '../../support/eventually.ts';
import { command_file } from '../../support/kit/kit.ts';
import { peerMissing } from '../../support/peers.ts';
import { pmtilesArchive } from '../../support/service/pmtiles-archive.ts';
import { type Proxy, served_name, startProxy } from '../../support/service/proxy.ts';
import { makeDirectory, withDirectory } from '../../support/temporary.ts';
import { freePort } from '../../support/ports.ts';

const archive = pmtilesArchive({ filler_bytes: 300_000 });

describe('check', () => {
  const check = async (dir: string, text: string) => {
    const file = join(dir, 'service.yaml');
    await writeFile(file, text);
    return startChild([command_file, 'check', file]).ended;
  };

  it('accepts the file of the service and names what it will do', async () => {
    await withDirectory(async (dir) => {
      const text = 'broker:\n  url: mqtt://127.0.0.1:1883\ndatabase: kits.db\nlisten: 127.0.0.1:8081\n';
      const { code, stdout } = await check(dir, text);
      expect(code).toBe(0);
      for (const part of ['http://127.0.0.1:8081', 'mqtt://127.0.0.1:1883', join(dir, 'kits.db')]) {
        expect(stdout).toContain(part);
      }
    });
  });

  it('names file, line, key and remedy of a fault', async () => {
    await withDirectory(async (dir) => {
      const text =
        'broker:\n  url: mqtt://127.0.0.1:1883\ndatabase: kits.db\nlisten: everywhere\nhost: [a]\n';
      const { code, stderr } = await check(dir, text);
      expect(code).toBe(78);
      expect(stderr).toMatch(/service\.yaml:4:\d+ listen/u);
      expect(stderr).toMatch(/service\.yaml:5:\d+ host.*hosts/u);
    });
  });
});

describe.skipIf(peerMissing('mosquitto', 'openssl', 'nginx', 'haproxy'))('the standalone service', () => {
  let broker: Broker;
  let child: Child;
  let certificates: Certificates;
  let dir: string;
  let port: number;
  let metrics_port: number;
  let key: string;

  beforeAll(async () => {
    broker = await startMosquitto();
    dir = await makeDirectory();
    certificates = await makeCertificates(dir, 'nobody');
    port = await freePort();
    metrics_port = await freePort();
    const file = join(dir, 'service.yaml');
    await writeFile(join(dir, 'area.pmtiles'), archive);
    await writeFile(
      file,
      `broker: { url: ${broker.url} }
database: service.db
listen: 127.0.0.1:${port}
hosts: [${served_name}]
trusted_proxies: [127.0.0.1]
map: area.pmtiles
metrics: { listen: 127.0.0.1:${metrics_port} }
`,
    );
    const words = ['service', 'key', 'add', 'ops', '--kit', kit_id, '--config', file];
    key = (await startChild([command_file, ...words]).ended).stdout.trim();
    child = startChild([command_file, 'service', '--config', file]);
    await eventually('ready', async () =>
      fetch(`http://127.0.0.1:${port}/ready`).then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
  });
  afterAll(async () => {
    await child?.end('SIGTERM');
    await broker?.stop();
  });

  it('serves its figures to Prometheus on the loopback, and its health', async () => {
    await fetch(`http://127.0.0.1:${port}/api/kits`, { headers: { 'x-api-key': key } });
    const url = `http://127.0.0.1:${metrics_port}`;
    const text = await (await fetch(`${url}/metrics`)).text();
    expect(text).toMatch(/^kit_service_requests_total\{method="GET",status="200"\} [1-9]/mu);
    expect(text).toMatch(/^kit_service_ready 1$/mu);
    expect(text).toMatch(/^kit_service_database_up 1$/mu);
    expect(text).toMatch(/^kit_service_kits\{online="false"\} 0$/mu);
    expect(text).toMatch(/^kit_service_webhooks_disabled 0$/mu);
    expect(text).toMatch(/^kit_service_webhook_messages\{state="dead"\} 0$/mu);
    expect(await (await fetch(`${url}/metrics/kits`)).text()).toMatch(/^kits_not_shown 0$/mu);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(404);
  });

  describe.each(['nginx', 'haproxy'] as const)('behind %s with the sample', (kind) => {
    let proxy: Proxy;
    let ca: Buffer;
    beforeAll(async () => {
      const place = join(dir, kind);
      await mkdir(place);
      ca = await readFile(certificates.ca);
      proxy = await startProxy({ kind, dir: place, pair: certificates.server, service_port: port });
      await eventually('the proxy reaches the service', async () => (await ask('/ready')).status === 200);
    });
    afterAll(async () => proxy?.stop());

    const at = () => ({ host: '127.0.0.1', port: proxy.port, ca, servername: 'localhost' });
    async function ask(
      path: string,
      headers: Record<string, string> = {},
      body?: string,
      from = '127.0.0.1',
    ) {
      const asked = request({
        ...at(),
        localAddress: from,
        path,
        method: body === undefined ? 'GET' : 'POST',
        headers: { host: served_name, ...headers },
      });
      asked.end(body);
      asked.on('error', () => undefined);
      const [response] = (await once(asked, 'response')) as [IncomingMessage];
      response.resume();
      return { status: response.statusCode, headers: response.headers };
    }

    it('answers requests with a key, and 413 for a large body', async () => {
      expect((await ask('/api/kits', { 'x-api-key': key })).status).toBe(200);
      expect((await ask('/api/kits')).status).toBe(401);
      const large = { 'x-api-key': key, 'content-type': 'application/json' };
      expect((await ask(`/api/kits/${kit_id}/assets`, large, ' '.repeat(70_000))).status).toBe(413);
    });

    it('opens a session whose cookie is for TLS only', async () => {
      const headers = { 'content-type': 'application/json', origin: `https://${served_name}` };
      const opened = await ask('/api/session', headers, JSON.stringify({ api_key: key }));
      expect(opened.status).toBe(204);
      expect(String(opened.headers['set-cookie'])).toContain('; Secure');
    });

    it('passes ranges of the map through, with a validator that stays strong', async () => {
      const path = '/api/map/archive.pmtiles';
      const range = { 'x-api-key': key, range: 'bytes=0-6' };
      const first = await ask(path, { ...range, 'accept-encoding': 'gzip' });
      expect(first.status).toBe(206);
      expect(first.headers).toMatchObject({
        'content-range': `bytes 0-6/${archive.length}`,
        'content-length': '7',
      });
      expect(first.headers['content-encoding']).toBeUndefined();
      const { etag } = first.headers;
      expect(etag).toMatch(/^"/u);
      expect((await ask(path, { ...range, 'if-range': etag ?? '' })).status).toBe(206);
      expect((await ask(path, { ...range, 'if-range': '"another"' })).status).toBe(200);
      const beyond = `bytes=${archive.length}-`;
      expect((await ask(path, { 'x-api-key': key, range: beyond })).status).toBe(416);
    });

    it('names the client, which cannot name itself: who guesses keys is slowed down alone', async () => {
      const guess = async (from: string, claimed: string) =>
        ask('/api/kits', { 'x-api-key': 'kit_wrong', 'x-forwarded-for': claimed }, undefined, from);
      const guesser = kind === 'nginx' ? '127.0.0.21' : '127.0.0.22';
      const answers = new Set<number | undefined>();
      for (let n = 0; n < 65; n += 1) answers.add((await guess(guesser, `198.51.100.${n}`)).status);
      expect(answers).toEqual(new Set([401, 429]));
      expect((await guess('127.0.0.23', guesser)).status).toBe(401);
    });

    it('passes WebSockets through', async () => {
      const socket = new WebSocket(`wss://127.0.0.1:${proxy.port}/api/ws`, ['kit.v1'], {
        ca,
        headers: { host: served_name, 'x-api-key': key },
      });
      await once(socket, 'open');
      const frame = once(socket, 'message');
      socket.send(JSON.stringify({ type: 'subscribe', summaries: true }));
      const [raw] = z.tuple([z.instanceof(Buffer), z.boolean()]).parse(await frame);
      expect(JSON.parse(raw.toString('utf8'))).toMatchObject({ type: 'summaries', kits: [{ id: kit_id }] });
      socket.terminate();
    });
  });
});
