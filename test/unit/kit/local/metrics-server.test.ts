/** The port for those who watch the machine: figures, health, and an end that nobody can hold up. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import {
  type MetricsPage,
  type MetricsPlace,
  serveMetrics,
} from '../../../../src/kit/local/metrics-server.ts';

const well: MetricsPage = {
  content_type: 'text/plain; version=0.0.4',
  scrape: async () => 'x 1\n',
  check: async () => undefined,
  summary: () => 'connected, 4 assets online',
};

/** Serves the page until the test ends, and sees that nobody can hold that up. */
async function served(page: MetricsPage, place: Omit<MetricsPlace, 'listen'> = {}): Promise<string> {
  const ends = new AbortController();
  const at = { listen: { host: '127.0.0.1', port: 0 }, ...place };
  const { port, closed } = await serveMetrics(at, page, ends.signal);
  const url = `http://127.0.0.1:${port}`;
  onTestFinished(async () => {
    ends.abort();
    await closed;
    await expect(fetch(`${url}/healthz`)).rejects.toThrow('fetch failed');
  });
  return url;
}

test('health is 200 with a line on the kit, or 503 with the part that makes no progress', async () => {
  const answer = await fetch(`${await served(well)}/healthz`);
  expect([answer.status, await answer.text()]).toEqual([200, 'ok: connected, 4 assets online\n']);
  const stuck = 'the thread of the buffer has not answered within 2 s';
  const refused = await fetch(`${await served({ ...well, check: async () => stuck })}/healthz`);
  expect([refused.status, await refused.text()]).toEqual([503, `${stuck}\n`]);
});

const token = 'c0ffee'.repeat(8);
test.each([
  ['no token', undefined, 401],
  ['another token', `Bearer ${token}0`, 401],
  ['a part of it', `Bearer ${token.slice(1)}`, 401],
  ['it as a password', `Basic ${token}`, 401],
  ['it', `Bearer ${token}`, 200],
  ['it under another spelling of the scheme', `bearer  ${token}`, 200],
])(
  'with %s, figures are answered as they may be, and health always, its sentence as they are',
  async (_, authorization, status) => {
    const headers = authorization === undefined ? {} : { authorization };
    const kits = { ...well, scrapeKits: async () => 'k 1\n' };
    const url = await served(kits, { token });
    for (const path of ['/metrics', '/metrics/kits']) {
      const answer = await fetch(url + path, { headers });
      expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
        status,
        status === 401 ? 'Bearer' : null,
      ]);
      expect(await answer.text()).not.toContain(token);
    }
    const healthAt = async (at: string) => {
      const health = await fetch(`${at}/healthz`, { headers });
      return [health.status, await health.text()];
    };
    const isKnown = status === 200;
    expect(await healthAt(url)).toEqual([200, isKnown ? 'ok: connected, 4 assets online\n' : 'ok\n']);
    const stuck = await served({ ...well, check: async () => 'the buffer is stuck' }, { token });
    expect(await healthAt(stuck)).toEqual([503, isKnown ? 'the buffer is stuck\n' : 'unhealthy\n']);
  },
);

test('unreadable figures get an error response, and only GET is served', async () => {
  const broken = { ...well, scrape: async () => Promise.reject(new Error('no figures')) };
  const url = await served(broken);
  const answer = await fetch(`${url}/metrics`);
  expect([answer.status, await answer.text()]).toEqual([500, 'no figures\n']);
  expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).toBe(404);
});

test.each(['', 'GET /healthz HTTP/1.1\r\n'])(
  'health is answered while a program keeps connections that send only "%s"',
  async (sent) => {
    const url = await served(well);
    const held = Array.from({ length: 40 }, () => connect(Number(new URL(url).port), '127.0.0.1'));
    for (const socket of held) {
      socket.on('error', () => undefined);
      socket.once('connect', () => socket.write(sent));
    }
    await Promise.all(held.map(async (socket) => once(socket, 'connect')));
    for (let n = 0; n < 5; n += 1) {
      expect((await fetch(`${url}/healthz`, { headers: { connection: 'close' } })).status).toBe(200);
    }
    for (const socket of held) socket.destroy();
  },
);
