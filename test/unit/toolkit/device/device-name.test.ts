/** A name leads wherever a name server says: where the login of a device goes then. */
import type { LookupAddress } from 'node:dns';
import { createServer, type Socket } from 'node:net';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import { DeviceName } from '../../../../src/toolkit/device/device-name.ts';
import { pinnedHttp } from '../../../../src/toolkit/device/pinned-http.ts';
import { texts } from '../../../../src/toolkit/device/texts.ts';

const found = (address: string): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 });

/** A name that leads to `answers`, which the test changes, with the memory of a device. */
function nameOf(host = 'gate.lan', facts: { private_names?: string[] | undefined } = {}) {
  const answers: string[] = ['10.1.2.3'];
  const memory = {
    facts,
    change: async (change: typeof facts) => void Object.assign(facts, change),
  };
  const name = new DeviceName({
    host,
    memory,
    resolve: (_name, _options, done) => done(null, answers.map(found)),
  });
  const lookUp = async (options = {}) =>
    new Promise((resolve) => {
      name.lookup(host, options, (error, address) => resolve(error?.message ?? address));
    });
  return { name, answers, lookUp, facts };
}

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0)) await end();
});

describe('The name of a device that answered in a private network', () => {
  it.each([
    '10.1.2.3',
    '192.168.1.4',
    '::ffff:172.16.0.9',
    'fd00::7',
    '169.254.1.1',
    'fe80::1%eth0',
    '127.0.0.1',
    '100.64.0.5',
  ])('is not followed from %s to the internet, also after a restart', async (address) => {
    const { name, answers, lookUp, facts } = nameOf();
    name.reached(address);
    await name.accept();
    const again = nameOf('gate.lan', structuredClone(facts));
    for (const each of [{ answers, lookUp }, again]) {
      each.answers.splice(0, 1, '203.0.113.9', '2001:db8:1::1');
      expect(await each.lookUp()).toBe(texts.name_leads_out('gate.lan', '203.0.113.9'));
      each.answers.push('10.9.9.9');
      expect([await each.lookUp(), await each.lookUp({ all: true })]).toEqual([
        '10.9.9.9',
        [found('10.9.9.9')],
      ]);
    }
  });

  it('is followed where it was reached, but what answered was not accepted as the device', async () => {
    const { name, answers, lookUp } = nameOf();
    name.reached('10.1.2.3');
    answers.splice(0, 1, '203.0.113.9');
    expect([await lookUp(), name.address]).toEqual(['203.0.113.9', 'gate.lan']);
  });
});

it('a name that leads to a device in the internet, another name and an address are followed', async () => {
  const outside = nameOf();
  outside.answers.splice(0, 1, '203.0.113.9');
  outside.name.reached('203.0.113.9');
  await outside.name.accept();
  expect([await outside.lookUp(), outside.name.address]).toEqual(['203.0.113.9', '203.0.113.9']);
  const renamed = nameOf('gate.example.com', { private_names: ['gate.lan'] });
  renamed.answers.splice(0, 1, '203.0.113.9');
  expect(await renamed.lookUp()).toBe('203.0.113.9');
  const plain = nameOf('10.1.2.3');
  plain.name.reached('10.1.2.3');
  await plain.name.accept();
  expect([plain.facts, plain.name.address]).toEqual([{}, '10.1.2.3']);
});

it('a password is not sent where the name of a device leads out of its network', async () => {
  const sockets: Socket[] = [];
  const server = createServer((socket) => void sockets.push(socket));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  endings.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const at = server.address();
  const port = typeof at === 'object' && at !== null ? at.port : 0;
  const { name, answers } = nameOf('gate.lan', { private_names: ['gate.lan'] });
  answers.splice(0, 1, '203.0.113.9');
  const limits = { connect_ms: 5_000, reply_bytes_max: 1_000, refused_remedy: '' };
  for (const tls of [false, true]) {
    const http = pinnedHttp({ host: 'gate.lan', name, port, tls, check: async () => undefined, ...limits });
    endings.push(() => http.close());
    await expect(http.post('/login', '{}', { deadline_ms: 5_000 })).rejects.toThrow(
      texts.name_leads_out('gate.lan', '203.0.113.9'),
    );
  }
  expect(sockets).toEqual([]);
});
