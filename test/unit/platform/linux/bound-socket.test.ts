import fc from 'fast-check';
import { once } from 'node:events';
import { createServer, isIPv6, SocketAddress } from 'node:net';
import { createSocket } from 'node:dgram';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DeviceUnreachable } from '../../../../src/platform/errors.ts';
import { type EchoReply, openIcmp } from '../../../../src/platform/linux/bound-icmp.ts';
import { connectTcp, knockTcp } from '../../../../src/platform/linux/bound-tcp.ts';
import { openUdp } from '../../../../src/platform/linux/bound-fd.ts';
import { canonicalIp } from '../../../../src/platform/linux/socket-address.ts';
import { decodeSocketAddress, encodeSocketAddress } from '../../../../src/platform/linux/socket-address.ts';
import { texts } from '../../../../src/platform/texts.ts';
import { eventually } from '../../../support/eventually.ts';
import { peerMissing, rootMissing } from '../../../support/peers.ts';
import {
  lab_ports,
  lab_public_ip,
  lab_targets,
  type LabWan,
  startWanLab,
  type WanLab,
} from '../../../support/gateway/wan-lab.ts';
import { freePort } from '../../../support/ports.ts';

const timeout_ms = 5_000;

/** A server on the loopback that ends each connection with a greeting. */
async function withServer(fn: (port: number) => Promise<void>): Promise<void> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.end('hello');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  try {
    await fn(address.port);
  } finally {
    server.close();
  }
}

describe('sockets bound to a device', () => {
  it('connect by TCP and carry data both ways as any socket does', async () => {
    await withServer(async (port) => {
      const socket = await connectTcp({ device: 'lo', host_ip: '127.0.0.1', port, timeout_ms });
      expect([socket.remoteAddress, socket.remotePort]).toEqual(['127.0.0.1', port]);
      await expect(text(socket)).resolves.toBe('hello');
    });
  });

  it('describe in words why a connection fails, with the code as cause', async () => {
    const port = await freePort();
    const refused = connectTcp({ device: 'lo', host_ip: '127.0.0.1', port, timeout_ms });
    await expect(refused).rejects.toThrow(DeviceUnreachable);
    await expect(refused).rejects.toMatchObject({
      message: `127.0.0.1 port ${port} over lo: connection refused`,
      cause: { code: 'ECONNREFUSED' },
    });
    const missing = connectTcp({ device: 'none0', host_ip: '127.0.0.1', port, timeout_ms });
    await expect(missing).rejects.toThrow(texts.no_device('none0'));
    await expect(openUdp({ device: 'none0', family: 4 })).rejects.toThrow(texts.no_device('none0'));
  });

  it('take a refusal for an answer when they knock', async () => {
    const echo = await knockTcp({ device: 'lo', host_ip: '127.0.0.1', port: await freePort(), timeout_ms });
    expect(echo).toMatchObject({ rtt_ms: expect.any(Number) as number });
  });

  it('end a connection attempt with its signal, before and during the attempt', async () => {
    // Nobody answers on the loopback for an address of the documentation range.
    const attempt = async (signal: AbortSignal) =>
      connectTcp({ device: 'lo', host_ip: '198.51.100.1', port: 9, timeout_ms: 60_000, signal });
    await expect(attempt(AbortSignal.abort())).rejects.toMatchObject({ cause: { code: 'ECANCELED' } });
    const stopping = new AbortController();
    const attempted = attempt(stopping.signal);
    setImmediate(() => stopping.abort());
    await expect(attempted).rejects.toMatchObject({ cause: { code: 'ECANCELED' } });
  });

  it('exchange UDP datagrams', async () => {
    const far = createSocket('udp4', (message, from) => far.send(message, from.port, from.address));
    far.bind(0, '127.0.0.1');
    await once(far, 'listening');
    const near = await openUdp({ device: 'lo', family: 4 });
    near.send('ping', far.address().port, '127.0.0.1');
    const [message] = (await once(near, 'message')) as [Buffer];
    expect(message.toString()).toBe('ping');
    near.close();
    far.close();
  });

  it.skipIf(rootMissing()).each([
    [4, '127.0.0.1'],
    [6, '::1'],
  ] as const)('measure an echo over IPv%d without the pauses of this process', async (family, ip) => {
    let answered = Promise.withResolvers<EchoReply>();
    const socket = await openIcmp({ device: 'lo', family, onReply: (reply) => answered.resolve(reply) });
    const pause_ms = 200;
    /** The process does nothing else for a while after the question, so that it reads the answer late: how long after it came. */
    const late = async (): Promise<number> => {
      answered = Promise.withResolvers();
      const asked_ms = performance.now();
      expect(socket.send(ip, 7, Buffer.from('payload'))).toBeNull();
      const sent_ms = performance.now();
      while (performance.now() - sent_ms < pause_ms);
      const paused_ms = performance.now();
      const { from, sequence, payload, received_ms } = await answered.promise;
      expect([from, sequence, payload.toString()]).toEqual([ip, 7, 'payload']);
      expect(received_ms).toBeGreaterThanOrEqual(asked_ms);
      return paused_ms - received_ms;
    };
    // The kernel begins to stamp a moment after it was asked to: the first echoes may bear none.
    await eventually('the kernel stamps', async () => (await late()) > 0);
    await expect(late()).resolves.toBeGreaterThan(0);
    socket.close();
    expect(socket.send(ip, 8, Buffer.alloc(0))).toBe('EBADF');
  });
});

describe('socket addresses', () => {
  it('are converted from the form of the kernel to the canonical spelling of Node.js', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), fc.nat(65_535), (ip, port) => {
        const encoded = encodeSocketAddress(ip, port);
        expect(encoded.readUInt16BE(2)).toBe(port);
        expect(decodeSocketAddress(encoded)).toBe(canonicalIp(ip));
        const family = isIPv6(ip) ? 'ipv6' : 'ipv4';
        const [mine, node] = [canonicalIp(ip), new SocketAddress({ address: ip, family }).address];
        expect(encodeSocketAddress(node, port)).toEqual(encodeSocketAddress(mine, port));
      }),
    );
  });
});

describe.skipIf(rootMissing() || peerMissing('ip', 'nft', 'sysctl'))(
  'sockets of a gateway with two WANs',
  () => {
    let lab: WanLab;
    let leave: () => void = () => undefined;
    beforeAll(async () => {
      lab = await startWanLab();
      leave = lab.enter();
    });
    afterAll(async () => {
      leave();
      await lab.stop();
    });

    /** The address of the caller, as a web server of the internet sees it. */
    const seenFrom = async (device: LabWan | undefined): Promise<string | undefined> => {
      const port = lab_ports.what_is_my_ip;
      const socket = await connectTcp({ device, host_ip: lab_targets[0], port, timeout_ms });
      socket.write('GET / HTTP/1.1\r\nHost: lab\r\nConnection: close\r\n\r\n');
      return (await text(socket)).split(/\r?\n/u).find((line) => /^\d+\.\d+\.\d+\.\d+$/u.test(line));
    };

    it('leave by the device they are bound to, whichever has the default route, and by that when bound to none', async () => {
      const { sat0, wwan0 } = lab_public_ip;
      await expect(Promise.all([seenFrom('sat0'), seenFrom('wwan0'), seenFrom(undefined)])).resolves.toEqual([
        sat0,
        wwan0,
        sat0,
      ]);
      await lab.ip('route', 'change', 'default', 'via', '100.64.0.1', 'dev', 'sat0', 'metric', '100');
      await lab.ip('route', 'add', 'default', 'via', '10.64.0.1', 'dev', 'wwan0', 'metric', '50');
      await expect(Promise.all([seenFrom('sat0'), seenFrom('wwan0'), seenFrom(undefined)])).resolves.toEqual([
        sat0,
        wwan0,
        wwan0,
      ]);
    });

    it('time out without an answer', async () => {
      await lab.set('wwan0', { blackhole: true });
      const attempt = connectTcp({ device: 'wwan0', host_ip: lab_targets[0], port: 443, timeout_ms: 300 });
      await expect(attempt).rejects.toMatchObject({ cause: { code: 'ETIMEDOUT' } });
      await lab.set('wwan0', {});
    });
  },
);
