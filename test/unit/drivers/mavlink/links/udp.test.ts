/** Links over UDP, on real sockets. */
import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { afterEach, describe, expect, it } from 'vitest';
import { encode } from '../../../../../drivers/mavlink/wire/messages.ts';
import { keyOfPassphrase, signingWith } from '../../../../../drivers/mavlink/wire/signing.ts';
import { isBroadcast } from '../../../../../drivers/mavlink/links/udp.ts';
import { texts } from '../../../../../drivers/mavlink/links/texts.ts';
import { heartbeat } from '../frames.ts';
import { clockAt } from '../wire/signing-lab.ts';
import { listen, opened, over, useLinks } from './test-link.ts';
import { elapse } from '../../../../support/elapse.ts';
import { eventually } from '../../../../support/eventually.ts';
import { freePort } from '../../../../support/ports.ts';

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.close();
});
// Before the peers are gone.
useLinks();

/** Opens a vehicle on a separate port and records the datagrams that it receives. */
async function vehicle(port = 0, host = '127.0.0.1') {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
  sockets.push(socket);
  const got: Buffer[] = [];
  socket.on('message', (bytes) => got.push(bytes));
  socket.bind(port, host);
  await once(socket, 'listening');
  return {
    socket,
    got,
    port: socket.address().port,
    send: (bytes: Uint8Array, to: number) => socket.send(bytes, to, '127.0.0.1'),
  };
}

describe('UDP link', () => {
  it('receives from every vehicle as a listener, sends to one peer, and to all without a peer', async () => {
    const { port, link, frames, untilReceived } = await opened('udp_listen');
    const [a, b] = [await vehicle(), await vehicle()];
    link.send(heartbeat(0, 245));
    expect(link.stats().unsent).toBe(1);
    a.send(heartbeat(1, 1), port);
    b.send(Buffer.concat([heartbeat(2, 2), heartbeat(3, 2)]), port);
    await untilReceived(3);
    expect(frames).toEqual(
      expect.arrayContaining([
        { seq: 1, sysid: 1, peer: `127.0.0.1:${a.port}`, signature_ok: null },
        { seq: 2, sysid: 2, peer: `127.0.0.1:${b.port}`, signature_ok: null },
        { seq: 3, sysid: 2, peer: `127.0.0.1:${b.port}`, signature_ok: null },
      ]),
    );
    link.send(heartbeat(10, 245), `127.0.0.1:${b.port}`);
    await eventually('b was answered', () => b.got.length === 1);
    link.send(heartbeat(11, 245));
    await eventually('both were sent to', () => a.got.length === 1 && b.got.length === 2);
    expect(link.stats()).toMatchObject({ frames: 3, bytes_out: heartbeat().length * 2, unsent: 1 });
  });

  it('does not accept a sender without MAVLink as a peer', async () => {
    const { port, link } = await opened('udp_listen');
    const stranger = await vehicle();
    stranger.send(Buffer.from('GET / HTTP/1.1'), port);
    await eventually('it came', () => link.stats().bytes_in > 0);
    link.send(heartbeat());
    expect(link.stats().unsent).toBe(1);
  });

  it('reports an occupied port once and opens when the port becomes free', async () => {
    const port = await freePort();
    const other = await vehicle(port);
    const { states, untilDown, untilUp } = listen({ kind: 'udp_listen', host: '127.0.0.1', port });
    await untilDown();
    expect(states[0]?.[1]).toContain(`UDP port ${port} of 127.0.0.1: `);
    other.socket.close();
    sockets.splice(0);
    await untilUp();
    expect(states.map(([up]) => up)).toEqual([false, true]);
  });

  it('sends first as a client, always from its fixed port, and follows the vehicle to a new port', async () => {
    const drone = await vehicle();
    const { port, link, frames, untilReceived } = await opened('udp_client', { to: drone.port });
    const from = once(drone.socket, 'message');
    link.send(heartbeat(0, 245));
    expect((await from)[1]).toMatchObject({ port });
    const rebooted = await vehicle();
    rebooted.send(heartbeat(5), port);
    await untilReceived(1);
    expect(frames[0]?.peer).toBe(`127.0.0.1:${rebooted.port}`);
    link.send(heartbeat(1, 245), frames[0]?.peer);
    await eventually('the new port was answered', () => rebooted.got.length === 1);
    expect(drone.got).toHaveLength(1);
  });

  it('stops sending to a silent vehicle, and sends to the configured address again as a client', async () => {
    const [configured, other] = [await vehicle(), await vehicle()];
    const { port, link, untilReceived } = await opened('udp_client', { to: configured.port });
    other.send(heartbeat(1), port);
    await untilReceived(1);
    link.send(heartbeat(2, 245));
    await eventually('the other was answered', () => other.got.length === 1);
    await elapse(16_000);
    link.send(heartbeat(3, 245));
    await eventually('the configured address received a frame', () => configured.got.length === 1);
    link.send(heartbeat(4, 245), `127.0.0.1:${other.port}`);
    expect(link.stats().unsent).toBe(1);
  });

  it('keeps its local port across restarts as a client, so the vehicle sees the same peer', async () => {
    const local_port = await freePort();
    const drone = await vehicle();
    const options = { kind: 'udp_client', host: '127.0.0.1', port: drone.port, local_port };
    const ports: number[] = [];
    drone.socket.on('message', (_, { port }) => ports.push(port));
    for (const round of [1, 2]) {
      const mine = new AbortController();
      const { link, untilUp } = listen(options, { signal: mine.signal });
      await untilUp();
      link.send(heartbeat());
      await eventually('the vehicle received a frame', () => ports.length === round);
      mine.abort();
      await link.ended;
    }
    expect(ports).toEqual([local_port, local_port]);
  });

  it('passes on the next frame after its listener threw', async () => {
    const { port, link, seqs, failures, untilReceived } = await opened('udp_listen', { throwOn: 1 });
    const drone = await vehicle();
    drone.send(Buffer.concat([heartbeat(1), heartbeat(2)]), port);
    await untilReceived(1);
    expect(seqs()).toEqual([2]);
    expect(failures).toHaveLength(1);
    expect(link.stats().faults).toBe(1);
  });

  it('accepts only signed frames and radio reports when a key is configured', async () => {
    const key = keyOfPassphrase('fleet');
    const clock = clockAt(1_000_000);
    const signing = signingWith(key, clock);
    const { port, link, frames, untilReceived } = await opened('udp_listen', { signing });
    const drone = await vehicle();
    const signed = (seq: number, by = signing) =>
      encode(
        'HEARTBEAT',
        { type: 2, autopilot: 3, base_mode: 0, custom_mode: 0, system_status: 3, mavlink_version: 3 },
        { sysid: 1, compid: 1, seq, sign: by.signer(1) },
      );
    const radio = encode(
      'RADIO_STATUS',
      { rssi: 200, remrssi: 190, txbuf: 100, noise: 40, remnoise: 41, rxerrors: 0, fixed: 0 },
      { sysid: 51, compid: 68, seq: 0 },
    );
    drone.send(heartbeat(1), port);
    drone.send(signed(2, signingWith(keyOfPassphrase('another'), clock)), port);
    drone.send(radio, port);
    drone.send(signed(3), port);
    await untilReceived(2);
    expect(frames.map(({ sysid, signature_ok }) => [sysid, signature_ok])).toEqual([
      [51, null],
      [1, true],
    ]);
    expect(link.stats()).toMatchObject({ unsigned: 1, bad_signatures: 1 });
  });

  it('frees its port when it ends, and ignores later sends', async () => {
    const { port, link, untilReceived } = await opened('udp_listen');
    const drone = await vehicle();
    drone.send(heartbeat(), port);
    await untilReceived(1);
    over.abort();
    // Its socket closes a few turns after the signal, and `ended` resolves still later.
    for (let turn = 0; turn < 50; turn++) {
      link.send(heartbeat());
      await Promise.resolve();
    }
    await link.ended;
    link.send(heartbeat());
    expect(link.stats().unsent).toBeGreaterThan(0);
    const next = await vehicle(port);
    expect(next.port).toBe(port);
  });

  it('sends to its vehicle while more strangers than it keeps in touch with send to it, and to few of them', async () => {
    const { port, link, frames, untilReceived } = await opened('udp_listen');
    const drone = await vehicle();
    drone.send(heartbeat(1), port);
    await untilReceived(1);
    const hosts = Array.from({ length: 90 }, (_, n) => `127.0.0.${2 + (n % 3)}`);
    const strangers = await Promise.all(hosts.map(async (host) => vehicle(0, host)));
    for (const each of strangers) each.send(heartbeat(2, 9), port);
    await untilReceived(91);
    expect(link.send(heartbeat(10, 245), frames[0]?.peer)).toBe(true);
    await eventually('the vehicle received it', () => drone.got.length === 1);
    link.send(heartbeat(11, 245));
    await eventually('it receives what is for all', () => drone.got.length === 2);
    await eventually('so do some', () => strangers.filter(({ got }) => got.length > 0).length === 63);
  });

  it('sends to a source that may be forged three times the bytes that came from it, and to its configured address without limit', async () => {
    const [drone, victim] = [await vehicle(), await vehicle(0, '127.0.0.2')];
    const { port, link, frames, untilReceived } = await opened('udp_client', { to: drone.port });
    victim.send(heartbeat(1, 9), port);
    await untilReceived(1);
    const forged = frames[0]?.peer;
    for (let seq = 0; seq < 5; seq += 1) link.send(heartbeat(seq, 245));
    expect(link.send(heartbeat(6, 245), forged)).toBe(false);
    expect(link.hasRoom(forged ?? '')).toBe(false);
    await eventually('the configured address received all', () => drone.got.length === 5);
    await eventually('the other one received its part', () => victim.got.length === 3);
    victim.send(heartbeat(2, 9), port);
    await untilReceived(2);
    expect(link.hasRoom(forged ?? '')).toBe(true);
    expect([link.isNamed(forged ?? ''), link.isNamed(`127.0.0.1:${drone.port}`)]).toEqual([false, true]);
  });

  it('sends to its configured address while a stranger at another one sends, as a client', async () => {
    const [drone, stranger] = [await vehicle(), await vehicle(0, '127.0.0.2')];
    const { port, link, untilReceived } = await opened('udp_client', { to: drone.port });
    stranger.send(heartbeat(1, 9), port);
    await untilReceived(1);
    link.send(heartbeat(2, 245));
    await eventually('the vehicle received it', () => drone.got.length === 1);
  });

  it('broadcasts to a network as a client, also when some vehicles have answered', async () => {
    const { got, port: to } = await vehicle(0, '0.0.0.0');
    const { port, link, untilReceived } = await opened('udp_client', { to, host: '127.255.255.255' });
    link.send(heartbeat(0, 245));
    await eventually('the vehicle has received it', () => got.length === 1);
    const early = await vehicle();
    early.send(heartbeat(1), port);
    await untilReceived(1);
    link.send(heartbeat(2, 245));
    await eventually('vehicles that have not answered receive it too', () => got.length === 2);
  });

  it.each([
    ['255.255.255.255', true],
    ['127.255.255.255', true],
    ['127.0.0.1', false],
    ['203.0.113.255', false],
    ['::1', false],
  ])('recognises %s as a broadcast address: %s', (host, is_broadcast) => {
    expect(isBroadcast(host)).toBe(is_broadcast);
  });

  const has_ipv6 = Object.values(networkInterfaces()).some((all) =>
    all?.some(({ address }) => address === '::1'),
  );

  it('uses IPv6 as a client when its vehicle does', async ({ skip }) => {
    skip(!has_ipv6, 'the loopback has no IPv6');
    const { socket: drone, port: to } = await vehicle(0, '::1');
    const { port, link, frames, untilReceived } = await opened('udp_client', { to, host: '::1' });
    const received = once(drone, 'message');
    link.send(heartbeat(0, 245));
    expect((await received)[1]).toMatchObject({ port });
    drone.send(heartbeat(4), port, '::1');
    await untilReceived(1);
    expect(frames[0]?.peer).toBe(`[::1]:${to}`);
  });

  it('resolves the host name of its vehicle as a client, and reports a name that it cannot resolve', async () => {
    const { socket: drone, port } = await vehicle(0, (await lookup('localhost')).address);
    const named = listen({ kind: 'udp_client', host: 'localhost', port, local_port: await freePort() });
    await named.untilUp();
    const received = once(drone, 'message');
    named.link.send(heartbeat(0, 245));
    await received;
    const lost = listen({
      kind: 'udp_client',
      host: 'drone.invalid',
      port: 14_550,
      local_port: await freePort(),
    });
    await lost.untilDown();
    expect(lost.states[0]?.[1]).toContain(texts.unresolved('drone.invalid', ''));
    over.abort();
    await Promise.all([named.link.ended, lost.link.ended]);
  });
});
