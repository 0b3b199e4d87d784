import fc from 'fast-check';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from 'vitest';
import {
  publicAddress,
  bindingRequest,
  readBindingResponse,
} from '../../../../../drivers/links/probe/public-addresses.ts';
import { isPublicIp } from '../../../../../src/platform/public-ip.ts';
import { texts } from '../../../../../drivers/links/texts.ts';
import { forAll } from '../../../../support/for-all.ts';

/** Sample responses of RFC 5769 sections 2.2 and 2.3, which RFC 8489 points to. */
const transaction_id = Buffer.from('b7e7a701bc34d686fa87dfae', 'hex');
const ipv4_response = Buffer.from(
  '0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000080001a147e112a643' +
    '000800142b91f599fd9e90c38c7489f92af9ba53f06be7d780280004c07d4c96',
  'hex',
);
const ipv6_response = Buffer.from(
  '010100482112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220002000140002a1470113a9fa' +
    'a5d3f179bc25f4b5bed2b9d900080014a382954e4be67bf11784c97c8292c275bfe3ed4180280004c8fb0b4c',
  'hex',
);

describe('STUN messages', () => {
  it('sends the twenty bytes of the specification', () => {
    expect(bindingRequest(transaction_id).toString('hex')).toBe('000100002112a442b7e7a701bc34d686fa87dfae');
  });

  it('reads the sample answers of RFC 5769', () => {
    expect(readBindingResponse(ipv4_response, transaction_id)).toEqual({ address: '192.0.2.1' });
    const address = '2001:db8:1234:5678:11:2233:4455:6677';
    expect(readBindingResponse(ipv6_response, transaction_id)).toEqual({ address });
  });

  it('ignores an answer to another request', () => {
    expect(readBindingResponse(ipv4_response, Buffer.alloc(12))).toBe('foreign');
    expect(readBindingResponse(bindingRequest(transaction_id), transaction_id)).toBe('foreign');
  });

  it('refuses an error, an answer that is cut short, and an attribute that must be understood', () => {
    const changed = (offset: number, value: number) => {
      const copy = Buffer.from(ipv4_response);
      copy.writeUInt16BE(value, offset);
      return copy;
    };
    expect(readBindingResponse(changed(0, 0x0111), transaction_id)).toBe('refused');
    expect(readBindingResponse(ipv4_response.subarray(0, 50), transaction_id)).toBe('refused');
    expect(readBindingResponse(changed(20, 0x0022), transaction_id)).toBe('refused');
  });

  it('accepts any datagram without an exception', () => {
    forAll(fc.uint8Array({ maxLength: 120 }), fc.nat(79), (bytes, at) => {
      readBindingResponse(Buffer.from(bytes), transaction_id);
      const damaged = Buffer.from(ipv4_response);
      damaged.set(bytes.subarray(0, damaged.length - at), at);
      expect(['string', 'object']).toContain(typeof readBindingResponse(damaged, transaction_id));
    });
  });
});

describe('public addresses', () => {
  it.each(['8.8.8.8', '100.63.255.255', '100.128.0.1', '172.32.0.1', '2a00:1450::1', '203.0.113.10'])(
    'takes %s for one',
    (ip) => {
      expect(isPublicIp(ip)).toBe(true);
    },
  );

  it.each([
    '10.1.2.3',
    '100.64.0.2',
    '100.127.255.255',
    '172.16.0.1',
    '172.31.0.1',
    '192.168.1.1',
    '169.254.1.1',
    '127.0.0.1',
    '0.0.0.0',
    '192.0.0.4',
    '224.0.0.1',
    '255.255.255.255',
    'fe80::1',
    'fd00::1',
    '::1',
    '::',
    '::ffff:8.8.8.8',
    'ff02::1',
    texts.no_address,
    '',
  ])('does not take %j for one', (ip) => {
    expect(isPublicIp(ip)).toBe(false);
  });
});

describe('the question for the public address', () => {
  const servers: Socket[] = [];
  afterEach(() => {
    for (const server of servers.splice(0)) server.close();
  });

  /** Sees `xor` (masked) as the caller's address, after it has ignored the first requests. */
  const startServer = async ({ address, deaf = 0 }: { readonly address: string; readonly deaf?: number }) => {
    const server = createSocket('udp4');
    servers.push(server);
    let requests = 0;
    server.on('message', (request, from) => {
      requests += 1;
      if (requests <= deaf) return;
      const answer = Buffer.alloc(32);
      request.copy(answer);
      answer.writeUInt16BE(0x0101, 0);
      answer.writeUInt16BE(12, 2);
      answer.writeUInt16BE(0x0020, 20);
      answer.writeUInt16BE(8, 22);
      answer[25] = 1;
      answer.set(
        address.split('.').map((byte, at) => Number(byte) ^ (request[4 + at] ?? 0)),
        28,
      );
      // A stranger's answer first: only the one with the identifier of the request counts.
      const forged = Buffer.from(answer);
      forged.writeUInt32BE(0, 28);
      forged.writeUInt32BE(7, 8);
      server.send(forged, from.port, from.address);
      server.send(answer, from.port, from.address);
    });
    server.bind(0, '127.0.0.1');
    await once(server, 'listening');
    return { ip: '127.0.0.1', port: server.address().port, requests: () => requests };
  };
  const ask = async (...list: readonly { readonly ip: string; readonly port: number }[]) =>
    publicAddress({ device: 'lo', servers: list, signal: new AbortController().signal });

  it('repeats a lost request', async () => {
    const server = await startServer({ address: '198.51.100.7', deaf: 1 });
    await expect(ask(server)).resolves.toBe('198.51.100.7');
    expect(server.requests()).toBe(2);
  });

  it('has no result behind a second NAT, where the address is shared or private', async () => {
    const server = await startServer({ address: '100.64.3.4' });
    await expect(ask(server)).resolves.toBeNull();
  });

  it('sends nothing without a configured server, and ends immediately when it is stopped', async () => {
    await expect(ask()).resolves.toBeNull();
    const server = await startServer({ address: '198.51.100.7', deaf: 100 });
    const stopping = new AbortController();
    const asked = publicAddress({ device: 'lo', servers: [server], signal: stopping.signal });
    stopping.abort();
    await expect(asked).resolves.toBeNull();
  });

  it('has no result for a missing device', async () => {
    const server = await startServer({ address: '198.51.100.7' });
    const { signal } = new AbortController();
    await expect(publicAddress({ device: 'none0', servers: [server], signal })).resolves.toBeNull();
    expect(server.requests()).toBe(0);
  });
});
