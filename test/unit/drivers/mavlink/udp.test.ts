/** Links over UDP, on real sockets. */
import { createSocket, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { encode } from '../../../../drivers/mavlink/messages.ts';
import { keyOfPassphrase, signingWith } from '../../../../drivers/mavlink/signing.ts';
import { isBroadcast } from '../../../../drivers/mavlink/udp.ts';
import { heartbeat } from './frames.ts';
import { listen } from './heard.ts';
import { eventually } from '../../../support/eventually.ts';

let over: AbortController;
const sockets: Socket[] = [];
beforeEach(() => {
  over = new AbortController();
});
afterEach(async () => {
  vi.useRealTimers();
  over.abort();
  for (const socket of sockets.splice(0)) socket.close();
});

/** A vehicle on a port of its own, and the datagrams that came to it. */
async function vehicle(port = 0) {
  const socket = createSocket('udp4');
  sockets.push(socket);
  const got: Buffer[] = [];
  socket.on('message', (bytes) => got.push(bytes));
  socket.bind(port, '127.0.0.1');
  await once(socket, 'listening');
  const own = socket.address().port;
  return {
    socket,
    got,
    port: own,
    say: (bytes: Uint8Array, to: number) => socket.send(bytes, to, '127.0.0.1'),
  };
}

/** A port of UDP that was free a moment ago. */
async function freeUdpPort(): Promise<number> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.close();
  await once(socket, 'close');
  return port;
}

const local = (port: number) => ({ kind: 'udp_listen', host: '127.0.0.1', port });

it('a listening link hears every vehicle, answers one alone, and sends to all when nobody is named', async () => {
  const port = await freeUdpPort();
  const { link, heard, untilUp, untilHeard } = listen(local(port), { signal: over.signal });
  await untilUp();
  const [a, b] = [await vehicle(), await vehicle()];
  link.send(heartbeat(0, 245));
  expect(link.stats().unsent).toBe(1);
  a.say(heartbeat(1, 1), port);
  b.say(Buffer.concat([heartbeat(2, 2), heartbeat(3, 2)]), port);
  await untilHeard(3);
  expect(heard).toEqual(
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

it('a frame that is cut off by the end of its datagram does not spoil the next datagram', async () => {
  const port = await freeUdpPort();
  const { link, seqs, untilUp, untilHeard } = listen(local(port), { signal: over.signal });
  await untilUp();
  const drone = await vehicle();
  drone.say(heartbeat(1).subarray(0, 15), port);
  drone.say(heartbeat(2), port);
  await untilHeard(1);
  expect(seqs()).toEqual([2]);
  expect(link.stats().bytes_skipped).toBe(15);
});

it('who sends no MAVLink is no peer', async () => {
  const port = await freeUdpPort();
  const { link, untilUp } = listen(local(port), { signal: over.signal });
  await untilUp();
  const stranger = await vehicle();
  stranger.say(Buffer.from('GET / HTTP/1.1'), port);
  await eventually('it came', () => link.stats().bytes_in > 0);
  link.send(heartbeat());
  expect(link.stats().unsent).toBe(1);
});

it('a link whose port is taken says so once and comes up when the port is free', async () => {
  const port = await freeUdpPort();
  const other = await vehicle(port);
  const { states, untilDown, untilUp } = listen(local(port), { signal: over.signal });
  await untilDown();
  expect(states[0]?.[1]).toContain(`UDP port ${port} of 127.0.0.1: `);
  other.socket.close();
  sockets.splice(0);
  await untilUp();
  expect(states.map(([up]) => up)).toEqual([false, true]);
});

it('a client speaks first, always from its own fixed port, and follows the vehicle to a new port', async () => {
  const local_port = await freeUdpPort();
  const drone = await vehicle();
  const options = { kind: 'udp_client', host: '127.0.0.1', port: drone.port, local_port };
  const { link, heard, untilUp, untilHeard } = listen(options, { signal: over.signal });
  await untilUp();
  const from = once(drone.socket, 'message');
  link.send(heartbeat(0, 245));
  expect((await from)[1]).toMatchObject({ port: local_port });
  const rebooted = await vehicle();
  rebooted.say(heartbeat(5), local_port);
  await untilHeard(1);
  expect(heard[0]?.peer).toBe(`127.0.0.1:${rebooted.port}`);
  link.send(heartbeat(1, 245), heard[0]?.peer);
  await eventually('the new port was answered', () => rebooted.got.length === 1);
  expect(drone.got).toHaveLength(1);
});

it('a vehicle that is silent for long is not sent to any more, and a client asks its configured address again', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const local_port = await freeUdpPort();
  const [configured, other] = [await vehicle(), await vehicle()];
  const options = { kind: 'udp_client', host: '127.0.0.1', port: configured.port, local_port };
  const { link, untilUp, untilHeard } = listen(options, { signal: over.signal });
  await untilUp();
  other.say(heartbeat(1), local_port);
  await untilHeard(1);
  link.send(heartbeat(2, 245));
  await eventually('the other was answered', () => other.got.length === 1);
  vi.advanceTimersByTime(16_000);
  link.send(heartbeat(3, 245));
  await eventually('the configured address is asked', () => configured.got.length === 1);
  link.send(heartbeat(4, 245), `127.0.0.1:${other.port}`);
  expect(link.stats().unsent).toBe(1);
});

it('the same client is the same peer for the vehicle after a restart', async () => {
  const local_port = await freeUdpPort();
  const drone = await vehicle();
  const options = { kind: 'udp_client', host: '127.0.0.1', port: drone.port, local_port };
  const ports: number[] = [];
  drone.socket.on('message', (_, { port }) => ports.push(port));
  for (const round of [1, 2]) {
    const mine = new AbortController();
    const { link, untilUp } = listen(options, { signal: mine.signal });
    await untilUp();
    link.send(heartbeat());
    await eventually('the vehicle was spoken to', () => ports.length === round);
    mine.abort();
    await link.ended;
  }
  expect(ports).toEqual([local_port, local_port]);
});

it('a listener that throws over one frame hears the next one', async () => {
  const port = await freeUdpPort();
  const { link, seqs, failures, untilUp, untilHeard } = listen(local(port), { signal: over.signal }, 1);
  await untilUp();
  const drone = await vehicle();
  drone.say(Buffer.concat([heartbeat(1), heartbeat(2)]), port);
  await untilHeard(1);
  expect(seqs()).toEqual([2]);
  expect(failures).toHaveLength(1);
  expect(link.stats().faults).toBe(1);
});

it('with a key only what is signed with it gets through, and the reports of the radio', async () => {
  const port = await freeUdpPort();
  const key = keyOfPassphrase('fleet');
  let ticks = 1_000_000;
  const clock = { next: () => ++ticks, now: () => ticks, learn: () => undefined };
  const signing = signingWith(key, clock);
  const { link, heard, untilUp, untilHeard } = listen(local(port), { signal: over.signal, signing });
  await untilUp();
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
  drone.say(heartbeat(1), port);
  drone.say(signed(2, signingWith(keyOfPassphrase('another'), clock)), port);
  drone.say(radio, port);
  drone.say(signed(3), port);
  await untilHeard(2);
  expect(heard.map(({ sysid, signature_ok }) => [sysid, signature_ok])).toEqual([
    [51, null],
    [1, true],
  ]);
  expect(link.stats()).toMatchObject({ unsigned: 1, bad_signatures: 1 });
});

it('a link that has ended holds its port no longer, and sending over it does nothing', async () => {
  const port = await freeUdpPort();
  const { link, untilUp, untilHeard } = listen(local(port), { signal: over.signal });
  await untilUp();
  const drone = await vehicle();
  drone.say(heartbeat(), port);
  await untilHeard(1);
  over.abort();
  // Its socket closes a few turns after the signal, and its end is told later still.
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

it('a client can speak to all machines of a network, also when some have answered', async () => {
  const local_port = await freeUdpPort();
  const drone = createSocket('udp4');
  sockets.push(drone);
  const got: Buffer[] = [];
  drone.on('message', (bytes) => got.push(bytes));
  drone.bind(0, '0.0.0.0');
  await once(drone, 'listening');
  const { port } = drone.address();
  const options = { kind: 'udp_client', host: '127.255.255.255', port, local_port };
  const { link, untilUp, untilHeard } = listen(options, { signal: over.signal });
  await untilUp();
  link.send(heartbeat(0, 245));
  await eventually('the vehicle has heard it', () => got.length === 1);
  const early = await vehicle();
  early.say(heartbeat(1), local_port);
  await untilHeard(1);
  link.send(heartbeat(2, 245));
  await eventually('vehicles that have not answered hear it too', () => got.length === 2);
});

it.each([
  ['255.255.255.255', true],
  ['127.255.255.255', true],
  ['127.0.0.1', false],
  ['203.0.113.255', false],
  ['::1', false],
])('%s is the address of a whole network: %s', (host, is_broadcast) => {
  expect(isBroadcast(host)).toBe(is_broadcast);
});

const has_ipv6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === '::1'),
);

it('a client speaks IPv6 where its vehicle does', async ({ skip }) => {
  skip(!has_ipv6, 'the loopback has no IPv6');
  const drone = createSocket('udp6');
  sockets.push(drone);
  drone.bind(0, '::1');
  await once(drone, 'listening');
  const local_port = await freeUdpPort();
  const options = { kind: 'udp_client', host: '::1', port: drone.address().port, local_port };
  const { link, heard, untilUp, untilHeard } = listen(options, { signal: over.signal });
  await untilUp();
  const told = once(drone, 'message');
  link.send(heartbeat(0, 245));
  expect((await told)[1]).toMatchObject({ port: local_port });
  drone.send(heartbeat(4), local_port, '::1');
  await untilHeard(1);
  expect(heard[0]?.peer).toBe(`[::1]:${drone.address().port}`);
});

it('a client finds its vehicle by name, and says which name it cannot find', async () => {
  const { address, family } = await lookup('localhost');
  const drone = createSocket(family === 6 ? 'udp6' : 'udp4');
  sockets.push(drone);
  drone.bind(0, address);
  await once(drone, 'listening');
  const { port } = drone.address();
  const named = listen(
    { kind: 'udp_client', host: 'localhost', port, local_port: await freeUdpPort() },
    { signal: over.signal },
  );
  await named.untilUp();
  const told = once(drone, 'message');
  named.link.send(heartbeat(0, 245));
  await told;
  const lost = listen(
    { kind: 'udp_client', host: 'drone.invalid', port: 14_550, local_port: await freeUdpPort() },
    { signal: over.signal },
  );
  await lost.untilDown();
  expect(lost.states[0]?.[1]).toMatch(/^the name drone\.invalid cannot be resolved: /u);
  over.abort();
  await Promise.all([named.link.ended, lost.link.ended]);
});
