/** Attackers at modest rates, each on its own timer until the signal aborts: what a hostile network does to a kit all day. */
import { createSocket } from 'node:dgram';
import { connect, type Socket } from 'node:net';
import { deflateSync } from 'node:zlib';
import { connectAsync } from 'mqtt';
import { WebSocket } from 'ws';
import { encode } from '../../../drivers/mavlink/wire/messages.ts';
import { autopilotVersion } from '../../../drivers/mavlink/sim/telemetry.ts';
import { channels, downTopic, upTopic } from '../../../src/contract/topics.ts';
import { every } from '../../../src/platform/time.ts';
import type { Random } from '../../support/random.ts';

const tick_ms = 200;
/** 120 identities in five seconds, as in the attack that filled the heap. */
const identities_each_tick = 5;
const texts_each_tick = 20;
/** Of one vehicle, in one datagram. */
const beats_each_tick = 400;
const half_open_max = 300;
const asking_sockets = 4;
const subscribes_each_s = 5;
/** Requests in one packet. */
const pipelined = 500;
const large_bytes = 60_000;
const large_post = `POST /api/kits HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${large_bytes}\r\n\r\n`;
const big_message_every_ms = 30_000;
const control_text = '\u001b]52;c;cm0gLXJm\u0007\u009b2J\u202etxt.exe\n';

/** Vehicles that were never seen before, one with very many heartbeats, status texts that are all different, and noise, to one UDP port. */
export function floodMavlink(port: number, random: Random, signal: AbortSignal): void {
  const socket = createSocket('udp4');
  signal.addEventListener('abort', () => socket.close(), { once: true });
  let seq = 0;
  const send = (bytes: Uint8Array): void => socket.send(bytes, port, '127.0.0.1');
  const beats = Buffer.concat(
    Array.from({ length: beats_each_tick }, (_, n) =>
      encode('HEARTBEAT', heartbeat, { sysid: 19, compid: 1, seq: n & 0xff }),
    ),
  );
  every(tick_ms, signal, () => {
    for (let n = 0; n < identities_each_tick; n += 1) {
      const envelope = { sysid: 20 + random.below(230), compid: 1, seq: (seq += 1) & 0xff };
      send(encode('HEARTBEAT', heartbeat, envelope));
      send(encode('AUTOPILOT_VERSION', autopilotVersion(random.bytes(8).toString('hex')), envelope));
    }
    for (let n = 0; n < texts_each_tick; n += 1) {
      const text = `${random.below(1e9)} ${control_text}`.slice(0, 50);
      const envelope = { sysid: 20 + random.below(230), compid: 1, seq: (seq += 1) & 0xff };
      send(encode('STATUSTEXT', { severity: 2, text, id: 0, chunk_seq: 0 }, envelope));
    }
    send(beats);
    send(random.bytes(1 + random.below(400)));
  });
}

const heartbeat = {
  custom_mode: 0,
  type: 2,
  autopilot: 3,
  base_mode: 81,
  system_status: 3,
  mavlink_version: 3,
} as const;

/** Requests to a service that never end, hundreds at once, large bodies, guesses of keys, and noise. */
export function pesterHttp(url: string, random: Random, signal: AbortSignal): void {
  const { hostname: host, port } = new URL(url);
  const open = new Set<Socket>();
  const dial = (text: string | Buffer): void => {
    const socket = connect({ host, port: Number(port) });
    open.add(socket);
    socket.on('error', () => undefined).on('close', () => open.delete(socket));
    socket.write(text);
  };
  every(tick_ms, signal, () => {
    const [oldest] = open;
    if (open.size >= half_open_max) oldest?.destroy();
    dial('GET /api/kits HTTP/1.1\r\nHost: localhost\r\nX-Slow: ');
    if (random.below(5) === 0) dial(random.bytes(300));
  });
  every(tick_ms * 5, signal, () => {
    dial('GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(pipelined));
    dial(`${large_post}${'1,'.repeat(large_bytes / 2)}`);
    fetch(`${url}/api/kits`, { headers: { 'x-api-key': `guess-${random.below(1e9)}` } })
      .then(async (response) => response.arrayBuffer())
      .catch(() => undefined);
  });
  signal.addEventListener('abort', () => open.forEach((socket) => socket.destroy()), { once: true });
}

/** The holder of a valid key who asks for everything again and again, at rates that are allowed. */
export function askTooOften(url: string, key: string, kit_id: string, signal: AbortSignal): void {
  const headers = { 'x-api-key': key };
  const open = new Set<WebSocket>();
  const dial = (): void => {
    const socket = new WebSocket(`${url.replace('http', 'ws')}/api/ws`, { headers });
    open.add(socket);
    socket.on('error', () => undefined).on('close', () => open.delete(socket));
  };
  const subscriptions = [
    { type: 'subscribe', summaries: true },
    { type: 'subscribe', kits: [kit_id], assets: '*' },
  ].map((frame) => JSON.stringify(frame));
  every(1_000, signal, () => {
    while (open.size < asking_sockets) dial();
    for (const socket of open) {
      if (socket.readyState !== socket.OPEN) continue;
      for (let n = 0; n < subscribes_each_s; n += 1) socket.send(subscriptions[n % 2] ?? '');
    }
    for (const path of [`/api/kits/${kit_id}/assets`, `/api/kits/${kit_id}/telemetry`, '/api/kits']) {
      fetch(`${url}${path}`, { headers })
        .then(async (response) => response.arrayBuffer())
        .catch(() => undefined);
    }
  });
  signal.addEventListener('abort', () => open.forEach((socket) => socket.terminate()), { once: true });
}

/** A cloud gone mad: down messages of every kind that no kit can use. */
export async function babbleDown(
  broker_url: string,
  kit_id: string,
  random: Random,
  signal: AbortSignal,
): Promise<void> {
  const client = await connectAsync(broker_url, { protocolVersion: 5 });
  client.on('error', () => undefined);
  const uuid = (): string => crypto.randomUUID();
  const bodies = (): readonly (string | Buffer)[] => [
    random.bytes(200),
    '['.repeat(100_000),
    JSON.stringify({ epoch: 1, ranges: [[1, 2 ** 33 - 1]] }),
    JSON.stringify({ epoch: 2 ** 30, ranges: Array.from({ length: 5_000 }, (_none, n) => [n, n]) }),
    JSON.stringify({ task_id: uuid(), asset_id: uuid(), command_name: control_text, payload: {} }),
  ];
  const topics = (): readonly string[] => [
    downTopic(kit_id, { kind: 'ack' }),
    downTopic(kit_id, { kind: 'config' }),
    downTopic(kit_id, { kind: 'task', task_id: uuid() }),
    downTopic(kit_id, { kind: 'cancel', task_id: uuid() }),
    `k1/${kit_id}/down/${random.below(1e6)}`,
  ];
  every(tick_ms * 2, signal, () => {
    client.publish(random.of(topics()), random.of(bodies()), { qos: 1 });
  });
  every(big_message_every_ms, signal, () => {
    client.publish(random.of(topics()), Buffer.alloc(20_000_000, '['), { qos: 1 });
  });
  signal.addEventListener('abort', () => void client.end(true), { once: true });
}

/** Another kit at the same broker whose messages are made to kill the service of all kits. */
export async function poisonService(broker_url: string, random: Random, signal: AbortSignal): Promise<void> {
  const kit_id = crypto.randomUUID();
  const client = await connectAsync(broker_url, { protocolVersion: 5 });
  client.on('error', () => undefined);
  const bomb = deflateSync(`{"v":1,"historical":false,"groups":[${'1,'.repeat(4_000_000)}1]}`);
  const deep = deflateSync('['.repeat(4_000_000));
  const asset_id = crypto.randomUUID();
  let seq = 0;
  const huge = (): string =>
    JSON.stringify({
      time: new Date().toISOString(),
      epoch: 1,
      seq: (seq += 1),
      data: { id: asset_id, name: 'n'.repeat(3_900_000) },
    });
  every(tick_ms * 10, signal, () => {
    const [channel, body] = random.of([
      [channels.batch, bomb],
      [channels.batch, deep],
      [channels.asset(asset_id), huge()],
      [channels.commands(asset_id), `[${'{},'.repeat(1_000_000)}{}]`],
      [channels.telemetry, random.bytes(500)],
    ] as const);
    client.publish(upTopic(kit_id, channel), body, { qos: 1 });
  });
  signal.addEventListener('abort', () => void client.end(true), { once: true });
}
