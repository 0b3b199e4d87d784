/** The port for those who watch the machine: figures, health, and an end that nobody can hold up. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
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

async function withPage(
  page: MetricsPage,
  play: (url: string) => Promise<void>,
  place: Omit<MetricsPlace, 'listen'> = {},
): Promise<void> {
  const ends = new AbortController();
  const { port, closed } = await serveMetrics(
    { listen: { host: '127.0.0.1', port: 0 }, ...place },
    page,
    ends.signal,
  );
  try {
    await play(`http://127.0.0.1:${port}`);
  } finally {
    ends.abort();
    await closed;
  }
  await expect(fetch(`http://127.0.0.1:${port}/healthz`)).rejects.toThrow('fetch failed');
}

test('health is 200 with a line on the kit, or 503 with the part that makes no progress', async () => {
  await withPage(well, async (url) => {
    const answer = await fetch(`${url}/healthz`);
    expect([answer.status, await answer.text()]).toEqual([200, 'ok: connected, 4 assets online\n']);
  });
  const stuck = 'the thread of the buffer has not answered within 2 s';
  await withPage({ ...well, check: async () => stuck }, async (url) => {
    const answer = await fetch(`${url}/healthz`);
    expect([answer.status, await answer.text()]).toEqual([503, `${stuck}\n`]);
  });
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
    await withPage(
      kits,
      async (url) => {
        for (const path of ['/metrics', '/metrics/kits']) {
          const answer = await fetch(url + path, { headers });
          expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([
            status,
            status === 401 ? 'Bearer' : null,
          ]);
          expect(await answer.text()).not.toContain(token);
        }
        const health = await fetch(`${url}/healthz`, { headers });
        expect([health.status, await health.text()]).toEqual([
          200,
          status === 200 ? 'ok: connected, 4 assets online\n' : 'ok\n',
        ]);
      },
      { token },
    );
    await withPage(
      { ...well, check: async () => 'the buffer is stuck' },
      async (url) => {
        const health = await fetch(`${url}/healthz`, { headers });
        expect([health.status, await health.text()]).toEqual([
          503,
          status === 200 ? 'the buffer is stuck\n' : 'unhealthy\n',
        ]);
      },
      { token },
    );
  },
);

test('unreadable figures get an error response, and only GET is served', async () => {
  const broken = { ...well, scrape: async () => Promise.reject(new Error('no figures')) };
  await withPage(broken, async (url) => {
    const answer = await fetch(`${url}/metrics`);
    expect([answer.status, await answer.text()]).toEqual([500, 'no figures\n']);
    expect((await fetch(`${url}/metrics`, { method: 'POST' })).status).toBe(404);
  });
});

test.each(['', 'GET /healthz HTTP/1.1\r\n'])(
  'health is answered while a program keeps connections that send only "%s"',
  async (sent) => {
    await withPage(well, async (url) => {
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
    });
  },
);
