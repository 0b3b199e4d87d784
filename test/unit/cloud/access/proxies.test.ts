/** Behind reverse proxies the limits hold for each client, and no client chooses the address that it counts as. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { TrustedProxies, unnamed_max } from '../../../../src/cloud/access/proxies.ts';
import { texts } from '../../../../src/cloud/texts.ts';
import { kit_id } from '../../../support/contract-samples.ts';
import { type ServiceLab, startServiceLab } from '../../../support/service/service-lab.ts';

const trusted = ['10.0.0.5', '10.1.0.0/16', '2001:db8:1::/48'];

describe('the client of a request', () => {
  it.each([
    ['of a peer that is no proxy is the peer', '192.0.2.1', '198.51.100.7', '192.0.2.1'],
    ['is what the proxy names', '10.0.0.5', '198.51.100.7', '198.51.100.7'],
    ['is not what the client claims', '10.0.0.5', '203.0.113.9, 198.51.100.7', '198.51.100.7'],
    [
      'is not what it claims to be a proxy',
      '10.0.0.5',
      '203.0.113.9, 10.1.2.3, 198.51.100.7',
      '198.51.100.7',
    ],
    ['stands before several proxies', '10.0.0.5', '203.0.113.9, 198.51.100.7, 10.1.2.3', '198.51.100.7'],
    ['is a proxy that asks itself', '10.0.0.5', '10.1.2.3', '10.1.2.3'],
    ['may have a port', '10.0.0.5', '198.51.100.7:4711', '198.51.100.7'],
    ['may have IPv6', '10.0.0.5', '2001:db8:2::1', '2001:db8:2::1'],
    ['may have IPv6 with a port', '10.0.0.5', '[2001:db8:2::1]:4711', '2001:db8:2::1'],
    ['behind a proxy with IPv6', '2001:db8:1::9', '198.51.100.7', '198.51.100.7'],
    ['of mapped addresses', '::ffff:10.0.0.5', '::ffff:198.51.100.7, ::ffff:10.1.0.1', '198.51.100.7'],
    ['without a header is the proxy', '10.0.0.5', undefined, '10.0.0.5'],
    ['of an empty header is the proxy', '10.0.0.5', '', '10.0.0.5'],
    ['that hides is the proxy', '10.0.0.5', '198.51.100.7, unknown', '10.0.0.5'],
    ['that hides behind two proxies is the outer one', '10.0.0.5', 'unknown, 10.1.2.3', '10.1.2.3'],
    ['of 2,000 claims is not one of them', '10.0.0.5', `${'10.1.0.1,'.repeat(2_000)}10.1.0.2`, '10.1.0.1'],
  ])('%s', (_, peer, header, client) => {
    const headers = {
      ...(header !== undefined && { 'x-forwarded-for': header }),
      forwarded: 'for=203.0.113.66',
    };
    expect(new TrustedProxies({ trusted, header: 'x-forwarded-for' }).clientOf(headers, peer)).toBe(client);
  });

  it.each([
    ['one', 'for=198.51.100.7', '198.51.100.7'],
    ['with more', 'by=10.0.0.5;FOR="198.51.100.7:4711" ; proto=https', '198.51.100.7'],
    ['IPv6', 'for="[2001:db8:2::1]:4711"', '2001:db8:2::1'],
    ['several', 'for=203.0.113.9, for=198.51.100.7,for=10.1.2.3', '198.51.100.7'],
    ['a quote that holds separators', 'for="_a\\"b,for=203.0.113.9;", for=198.51.100.7', '198.51.100.7'],
    ['a quote that a client left open', 'for="203.0.113.9, for=198.51.100.7', '10.0.0.5'],
    ['an element without for', 'for=203.0.113.9, proto=https', '10.0.0.5'],
    ['a name', 'for=203.0.113.9, for=_hidden', '10.0.0.5'],
    ['no pair', 'for=198.51.100.7, x', '10.0.0.5'],
    ['blanks', `${' '.repeat(8_000)}x`, '10.0.0.5'],
  ])('is read from Forwarded: %s', (_, forwarded, client) => {
    const proxies = new TrustedProxies({ trusted, header: 'forwarded' });
    expect(proxies.clientOf({ forwarded, 'x-forwarded-for': '203.0.113.66' }, '10.0.0.5')).toBe(client);
    expect(proxies.clientOf({ forwarded }, '192.0.2.1')).toBe('192.0.2.1');
  });
});

describe('behind a trusted proxy', () => {
  let lab: ServiceLab;
  const proxy = '127.0.0.5';
  afterEach(async () => lab.stop());
  const start = async (): Promise<void> => {
    lab = await startServiceLab(kit_id, { proxies: { trusted: [proxy], header: 'x-forwarded-for' } });
  };

  async function ask(localAddress: string, client: string, headers = {}): Promise<number | undefined> {
    const asked = request(`${lab.url}/api/kits`, {
      localAddress,
      agent: false,
      headers: { 'x-forwarded-for': client, ...headers },
    });
    asked.end();
    const [response] = (await once(asked, 'response')) as [IncomingMessage];
    response.resume();
    await once(response, 'close');
    return response.statusCode;
  }
  const wrong = { 'x-api-key': 'kit_wrong_key' };

  async function guess(localAddress: string, client: (at: number) => string): Promise<ReadonlySet<unknown>> {
    const answers = new Set<unknown>();
    for (let at = 0; at < 70; at += 1) answers.add(await ask(localAddress, client(at), wrong));
    return answers;
  }

  it('a client that guesses keys is slowed down, whatever it claims, and no other', async () => {
    await start();
    expect(await guess(proxy, (at) => `203.0.113.${at}, 198.51.100.7`)).toContain(429);
    expect(await ask(proxy, '198.51.100.8', wrong)).toBe(401);
    expect(await ask(proxy, '198.51.100.7', { 'x-api-key': lab.key })).toBe(200);
  });

  it('a proxy that names no clients is in the log once, and none that names some or only checks health', async () => {
    lab = await startServiceLab(kit_id, {
      proxies: { trusted: ['127.0.0.0/29'], header: 'x-forwarded-for' },
    });
    const key = { 'x-api-key': lab.key };
    const hidden = async (localAddress: string, headers = {}): Promise<unknown> =>
      ask(localAddress, '', headers);
    await ask('127.0.0.3', '198.51.100.7', key);
    for (let at = 0; at < 2 * unnamed_max; at += 1) {
      await Promise.all([hidden('127.0.0.2', key), hidden('127.0.0.3', key), hidden('127.0.0.4')]);
    }
    const lines = lab.log.lines.filter(({ sentence }) => sentence === texts.log_proxy_silent);
    expect(lines.map(({ facts }) => facts)).toEqual([{ proxy: '127.0.0.2', header: 'x-forwarded-for' }]);
  });

  it('the header of any other peer is ignored', async () => {
    await start();
    expect(await guess('127.0.0.9', (at) => `198.51.100.${at}`)).toContain(429);
  });

  it('a client has 16 sockets before its key is known, and another one is served', async () => {
    await start();
    const opened: WebSocket[] = [];
    const open = async (client: string): Promise<number> => {
      const socket = new WebSocket(`${lab.url.replace('http', 'ws')}/api/ws`, ['kit.v1'], {
        localAddress: proxy,
        headers: { 'x-forwarded-for': client },
      });
      opened.push(socket);
      return new Promise((resolve) => {
        socket.on('error', () => undefined);
        socket.once('open', () => resolve(101));
        socket.once('unexpected-response', (_, response) => resolve(response.statusCode ?? 0));
      });
    };
    for (let at = 0; at < 16; at += 1) expect(await open('198.51.100.7')).toBe(101);
    expect(await open('203.0.113.1, 198.51.100.7')).toBe(429);
    expect(await open('198.51.100.8')).toBe(101);
    for (const each of opened) each.terminate();
  });
});
