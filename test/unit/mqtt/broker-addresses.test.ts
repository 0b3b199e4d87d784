/** The addresses of a broker's name while name servers fail to answer. */
import { createSocket, type Socket } from 'node:dgram';
import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { askServers, BrokerAddresses } from '../../../src/mqtt/broker-addresses.ts';
import { openTransport } from '../../../src/mqtt/socket.ts';

const host = 'broker.example.org';
const v4 = (address: string): LookupAddress => ({ address, family: 4 });
const first = [v4('192.0.2.1')];
const second = [v4('192.0.2.2')];
const silent = async (): Promise<never> => new Promise(() => undefined);
const failing = (code: string) => async (): Promise<never> =>
  Promise.reject(Object.assign(new Error(`getaddrinfo ${code} ${host}`), { code }));

/** An operating system and name servers whose answers the test sets. */
function lab() {
  const sources = {
    system: async (): Promise<readonly LookupAddress[]> => first,
    servers: silent as () => Promise<readonly LookupAddress[]>,
  };
  const asked = { system: 0, servers: 0 };
  const addresses = new BrokerAddresses({
    system: async () => {
      asked.system += 1;
      return sources.system();
    },
    servers: async () => {
      asked.servers += 1;
      return sources.servers();
    },
  });
  return { addresses, sources, asked };
}

describe('the addresses of a broker', () => {
  it('are those of the operating system where it answers, and no name server is asked', async () => {
    const { addresses, sources, asked } = lab();
    expect(await addresses.find(host)).toEqual(first);
    sources.system = async () => second;
    expect(await addresses.find(host)).toEqual(second);
    expect(asked).toEqual({ system: 2, servers: 0 });
  });

  it('are not those by which filters block a name', async () => {
    const { addresses, sources } = lab();
    const found = async (): Promise<unknown> =>
      new Promise((resolve, reject) => {
        addresses.lookup(host, { all: true }, (error, all) => (error ? reject(error) : resolve(all)));
      });
    sources.system = async () => [v4('0.0.0.0'), ...second];
    expect(await found()).toEqual(second);
    sources.system = async () => [v4('0.0.0.0'), { address: '::', family: 6 }];
    await expect(found()).rejects.toMatchObject({ code: 'NAME_BLOCKED' });
  });

  it.each([
    ['does not answer', silent],
    ['has no name server', failing('EAI_AGAIN')],
    // EAI_SYSTEM: Node.js has the code of the system (systemd/systemd#29883).
    ['has a resolver that fails', failing('EINVAL')],
  ])('are the last ones while the operating system %s', async (_, system) => {
    const { addresses, sources } = lab();
    await addresses.find(host);
    sources.system = system;
    expect(await addresses.find(host)).toEqual(first);
  });

  it('are those of any name server where there are no last ones', async () => {
    const { addresses, sources } = lab();
    sources.system = silent;
    sources.servers = async () => second;
    expect(await addresses.find(host)).toEqual(second);
    sources.servers = silent;
    expect(await addresses.find(host)).toEqual(second);
  });

  it('are waited for, and the reason is that of the operating system where nothing answers', async () => {
    const { addresses, sources } = lab();
    const answer = Promise.withResolvers<readonly LookupAddress[]>();
    sources.system = async () => answer.promise;
    sources.servers = failing('ECONNREFUSED');
    const found = addresses.find(host);
    answer.reject(Object.assign(new Error('late'), { code: 'EAI_AGAIN' }));
    await expect(found).rejects.toThrow('late');
  });

  it('are not remembered against the answer that the name does not exist', async () => {
    const { addresses, sources } = lab();
    await addresses.find(host);
    sources.system = failing('ENOTFOUND');
    await expect(addresses.find(host)).rejects.toThrow('ENOTFOUND');
  });

  it('are replaced by an answer that comes late, and the question is asked once meanwhile', async () => {
    const { addresses, sources, asked } = lab();
    await addresses.find(host);
    const answer = Promise.withResolvers<readonly LookupAddress[]>();
    sources.system = async () => answer.promise;
    expect(await Promise.all([addresses.find(host), addresses.find(host)])).toEqual([first, first]);
    expect(asked.system).toBe(2);
    answer.resolve(second);
    expect(await addresses.find(host)).toEqual(second);
    sources.system = silent;
    expect(await addresses.find(host)).toEqual(second);
  });

  it('begin with the one that was connected last', async () => {
    const { addresses, sources } = lab();
    sources.system = async () => [...first, ...second];
    addresses.connected(host, '192.0.2.2');
    expect(await addresses.find(host)).toEqual([...second, ...first]);
  });

  it('end with those that take connections and have no broker that answers, the last of them at the end', async () => {
    const { addresses, sources } = lab();
    const all = ['192.0.2.1', '192.0.2.2', '192.0.2.3'];
    sources.system = async () => all.map(v4);
    const tried: string[] = [];
    addresses.connected(host, '192.0.2.1');
    for (let attempt = 0; attempt < 4; attempt += 1) {
      const [next] = await addresses.find(host);
      tried.push(next?.address ?? '');
      addresses.failed(host, next?.address ?? '');
    }
    expect(tried).toEqual([...all, '192.0.2.1']);
    addresses.connected(host, '192.0.2.3');
    expect((await addresses.find(host))[0]?.address).toBe('192.0.2.3');
  });

  it('are remembered for few names', async () => {
    const { addresses, sources } = lab();
    for (let n = 0; n < 17; n += 1) {
      await addresses.find(`broker-${n}`);
      addresses.connected(`broker-${n}`, '192.0.2.1');
    }
    sources.system = silent;
    sources.servers = async () => second;
    expect(await addresses.find('broker-0')).toEqual(second);
    expect(await addresses.find('broker-16')).toEqual(first);
  });

  it('open a connection, by the family that is asked for', async () => {
    const server = createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const at = server.address();
    const port = typeof at === 'object' && at !== null ? at.port : 0;
    const { addresses, sources } = lab();
    sources.system = async () => [{ address: '::1', family: 6 }, v4('127.0.0.1')];
    const endpoint = { url: `mqtt://${host}:${port}`, ca: undefined, cert: undefined, key: undefined };
    const { stream } = await openTransport(endpoint, new AbortController().signal, { addresses });
    stream.destroy();
    expect((await addresses.find(host))[0]).toEqual(v4('127.0.0.1'));
    const plain = await new Promise((resolve) => {
      addresses.lookup(host, { family: 6 }, (...answer) => resolve(answer));
    });
    expect(plain).toEqual([null, '::1', 6]);
    sources.system = async () => [];
    const none = await new Promise((resolve) => {
      addresses.lookup(host, { all: true }, (error) => resolve(error?.code));
    });
    expect(none).toBe('ENOTFOUND');
    server.close();
  });
});

describe('name servers', () => {
  const open: Socket[] = [];
  afterEach(() => {
    for (const socket of open.splice(0)) socket.close();
  });

  /** Answers questions of type A with an address, and others with none; `mute`: says nothing. */
  async function nameServer(how: 'answers' | 'mute' | 'refuses'): Promise<string> {
    const socket = createSocket('udp4');
    open.push(socket);
    socket.on('message', (question, { port, address }) => {
      if (how === 'mute') return;
      const answer = Buffer.from(question);
      const isA = question.indexOf(Buffer.from([0, 0, 1, 0, 1]), 12) > 0;
      answer.writeUInt16BE(how === 'refuses' ? 0x81_85 : 0x81_80, 2);
      answer.writeUInt16BE(isA && how === 'answers' ? 1 : 0, 6);
      answer.writeUInt16BE(0, 8);
      answer.writeUInt16BE(0, 10);
      // Without the record that the library adds to its question.
      const end = question.indexOf(Buffer.from([0, 0, isA ? 1 : 28, 0, 1]), 12) + 5;
      const record = Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 0, 1]);
      const parts = [answer.subarray(0, end), ...(isA && how === 'answers' ? [record] : [])];
      socket.send(Buffer.concat(parts), port, address);
    });
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    return `127.0.0.1:${socket.address().port}`;
  }

  it('are asked in parallel, so that one of them is enough', async () => {
    const servers = [await nameServer('mute'), await nameServer('refuses'), await nameServer('answers')];
    expect(await askServers(host, servers)).toEqual([v4('198.18.0.1')]);
  });

  it('give nothing where all of them refuse', async () => {
    await expect(askServers(host, [await nameServer('refuses')])).rejects.toThrow(AggregateError);
    await expect(askServers(host, [])).rejects.toThrow(AggregateError);
  });
});
