/** One endpoint: stations receive the frames of vehicles over it and send theirs. Reopens after a loss, ends with its signal. */
import { serveDevice } from '../../../src/toolkit/device/device-session.ts';
import { link_retry } from '../../../src/toolkit/device/retry.ts';
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { aborted, every } from '../../../src/platform/time.ts';
import { type FramerTally, parseDatagram, StreamFramer } from '../wire/framer.ts';
import type { Frame, FrameView } from '../wire/frame.ts';
import type { EndpointOptions } from '../options.ts';
import { type EndpointHost, type EndpointStats, EndpointTally, type Relay, texts } from './endpoint-host.ts';
import { connect, createServer, isIPv6, type Socket } from 'node:net';
import { DeviceUnreachable, messageOf } from '../../../src/platform/errors.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import { readPaced, serveTcp, serveUdp, TurnBudget } from '../links/sockets.ts';
import { createSocket, type RemoteInfo } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { plainIp } from '../../../src/platform/networks.ts';
import { isPublicIp } from '../../../src/platform/public-ip.ts';
import { nameOf, Peer } from '../links/peers.ts';

type UdpListen = Extract<EndpointOptions, { kind: 'udp_listen' }>;
type UdpClient = Extract<EndpointOptions, { kind: 'udp_client' }>;

/** Datagrams that the system has not accepted yet. */
const unsent_max = 256;

interface Station {
  readonly host: string;
  readonly port: number;
}

export async function runUdpListen({ host, port, peers_max }: UdpListen, on: EndpointHost): Promise<void> {
  const stations = new Stations({
    peers_max,
    joined: (name) => on.joined(name),
    left: (name) => on.left(name),
  });
  const recent = (bytes: number): readonly Station[] => {
    const all = stations.recent(performance.now());
    const allowed = all.filter((each) => mayReceive(each, bytes));
    for (let refused = all.length - allowed.length; refused > 0; refused -= 1) on.tally.drop('public_peer');
    if (all.length === 0) on.tally.drop('no_peer');
    return allowed;
  };
  await serve({ host, port }, on, recent, (bytes, from) => {
    const isFull = stations.isFullFor(from, performance.now());
    // A datagram without a frame is not from a station.
    if (!on.datagram(bytes, nameOf(from), { isRefused: isFull }) || isFull) return;
    stations.received(from, bytes.length, performance.now());
  });
}

async function runUdpClient({ host, port }: UdpClient, on: EndpointHost): Promise<void> {
  const found = await Promise.race([lookup(host), aborted(on.signal)]).catch((error: unknown) => {
    throw new DeviceUnreachable(messageOf(error), { cause: error });
  });
  if (!found) return;
  const { address } = found;
  const name = nameOf({ address, port });
  const station = { host: address, port };
  on.joined(name);
  try {
    const own = { host: isIPv6(address) ? '::' : '0.0.0.0', port: 0 };
    await serve(
      own,
      on,
      () => [station],
      (bytes, from) => {
        // Anyone can send to this port; only the configured station may command.
        if (from.address === address && from.port === port) on.datagram(bytes, name, { isRefused: false });
      },
    );
  } finally {
    on.left(name);
  }
}

async function serve(
  own: { readonly host: string; readonly port: number },
  on: EndpointHost,
  stationsFor: (bytes: number) => readonly Station[],
  receive: (bytes: Uint8Array, from: RemoteInfo) => void,
): Promise<void> {
  const socket = createSocket(isIPv6(own.host) ? 'udp6' : 'udp4');
  const turn = new TurnBudget();
  socket.on('message', (bytes, from) => {
    if (turn.take(bytes.length)) receive(bytes, from);
    else on.overrun();
  });
  await serveUdp(socket, {
    own,
    signal: on.signal,
    opened: () =>
      on.opened(
        (bytes) => {
          for (const { host, port } of stationsFor(bytes.length)) {
            if (socket.getSendQueueCount() >= unsent_max) on.tally.drop('slow');
            else {
              // A station that is not listening is treated like a station that is switched off.
              socket.send(bytes, port, host, () => undefined);
              on.tally.to_stations += 1;
            }
          }
        },
        [socket.address().port],
      ),
    closing: () => on.closed(),
    fault: (error) => new DeviceUnreachable(error.message, { cause: error }),
  });
}

// The stations of a listening UDP endpoint: recent senders of frames.

/** A station that sends nothing for this long is gone: its port may belong to another process. */
const silence_max_ms = 15_000;

interface StationsParts {
  readonly peers_max: number;
  readonly joined: (peer: string) => void;
  readonly left: (peer: string) => void;
}

export class Stations {
  readonly #parts: StationsParts;
  #peers: readonly Peer[] = [];

  constructor(parts: StationsParts) {
    this.#parts = parts;
  }

  /** Whether a new station has no place. `now_ms` is monotonic. */
  isFullFor(from: RemoteInfo, now_ms: number): boolean {
    return !this.#at(from) && this.recent(now_ms).length >= this.#parts.peers_max;
  }

  /** Notes a frame of a station that has a place. */
  received(from: RemoteInfo, bytes: number, now_ms: number): void {
    const known = this.#at(from);
    const peer = known ?? new Peer(from, now_ms);
    peer.received(bytes, now_ms);
    if (known) return;
    this.#peers = [...this.#peers, peer];
    this.#parts.joined(peer.name);
  }

  recent(now_ms: number): readonly Peer[] {
    const isRecent = ({ received_ms }: Peer): boolean => silenceSince(received_ms, now_ms) <= silence_max_ms;
    if (this.#peers.every(isRecent)) return this.#peers;
    const gone = this.#peers.filter((peer) => !isRecent(peer));
    this.#peers = this.#peers.filter(isRecent);
    for (const { name } of gone) this.#parts.left(name);
    return this.#peers;
  }

  #at({ address, port }: RemoteInfo): Peer | undefined {
    return this.#peers.find((each) => each.port === port && each.host === address);
  }
}

/**
 * Whether a station may be sent so many bytes more. Its address may be forged, and then the one who has it would receive all
 * telemetry for the price of a heartbeat: one in the internet gets as little as a vehicle does.
 */
export function mayReceive(station: Peer, bytes: number): boolean {
  return !isPublicIp(plainIp(station.host)) || station.take(bytes);
}

type TcpListen = Extract<EndpointOptions, { kind: 'tcp_listen' }>;
type TcpClient = Extract<EndpointOptions, { kind: 'tcp_client' }>;

/** Of one connection; ten seconds of a telemetry radio. Frames beyond it are dropped whole. */
const unsent_bytes_max = 65_536;
/** A connection that accepts nothing for this long is closed: it would keep its place forever. */
const stalled_max_ms = 30_000;
const check_every_ms = 1_000;
const connect_timeout_ms = 4_000;
const keepalive_ms = 10_000;

export async function runTcpListen({ host, port, clients_max }: TcpListen, on: EndpointHost): Promise<void> {
  const clients = new Set<Client>();
  const ended = new Set<Promise<string>>();
  const server = createServer((socket) => {
    const client = new Client(socket, `${socket.remoteAddress ?? 'unknown'}:${socket.remotePort ?? 0}`, on);
    clients.add(client);
    const end = client.ended.finally(() => {
      clients.delete(client);
      ended.delete(end);
    });
    ended.add(end);
  });
  server.maxConnections = clients_max;
  server.on('drop', () => on.refused());
  try {
    await serveTcp(server, {
      own: { host, port },
      signal: on.signal,
      opened: () =>
        on.opened(
          (bytes) => {
            if (clients.size === 0) on.tally.drop('no_peer');
            for (const client of clients) client.relay(bytes);
          },
          [port],
        ),
      closing() {
        on.closed();
        for (const client of clients) client.close();
      },
      fault: (error) => new DeviceUnreachable(error.message, { cause: error }),
    });
  } finally {
    await Promise.all(ended);
  }
}

async function runTcpClient({ host, port }: TcpClient, on: EndpointHost): Promise<void> {
  const socket = connect({ host, port });
  const stop = (): void => void socket.destroy();
  on.signal.addEventListener('abort', stop, { once: true });
  if (on.signal.aborted) stop();
  socket.setTimeout(connect_timeout_ms, () => {
    socket.destroy(new Error(texts.connect_timeout(connect_timeout_ms / 1_000)));
  });
  let reason: string = texts.closed_by_peer;
  try {
    await new Promise<void>((resolve) => {
      socket.once('connect', resolve);
      socket.once('close', resolve);
      socket.on('error', (error) => {
        reason = error.message;
      });
    });
    socket.setTimeout(0);
    if (!socket.destroyed) {
      const client = new Client(socket, `${host}:${port}`, on);
      on.opened(client.relay, [socket.localPort ?? 0]);
      reason = await client.ended;
    }
  } finally {
    on.signal.removeEventListener('abort', stop);
    on.closed();
  }
  if (!on.signal.aborted) throw new DeviceUnreachable(reason);
}

/** One connected station. */
class Client {
  /** Resolves with the reason when the connection has ended. */
  readonly ended: Promise<string>;
  readonly #socket: Socket;
  readonly #on: EndpointHost;
  #corked = false;

  constructor(socket: Socket, name: string, on: EndpointHost) {
    this.#socket = socket;
    this.#on = on;
    this.ended = this.#serve(name);
  }

  /** Writes a frame, or drops it if the station does not read; frames of one turn of the event loop are written together. */
  readonly relay: Relay = (bytes) => {
    const socket = this.#socket;
    if (socket.destroyed || socket.writableLength > unsent_bytes_max) {
      this.#on.tally.drop('slow');
      return;
    }
    if (!this.#corked) {
      this.#corked = true;
      socket.cork();
      process.nextTick(() => {
        this.#corked = false;
        socket.uncork();
      });
    }
    socket.write(bytes);
    this.#on.tally.to_stations += 1;
  };

  close(): void {
    this.#socket.destroy();
  }

  async #serve(name: string): Promise<string> {
    const socket = this.#socket;
    const on = this.#on;
    let reason: string = texts.closed_by_peer;
    const over = new AbortController();
    const stream = on.stream(name, over.signal);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, keepalive_ms);
    readPaced(socket, stream);
    socket.on('error', (error) => {
      reason = error.message;
    });
    let written = 0;
    let moved_ms = performance.now();
    every(check_every_ms, over.signal, () => {
      const sent = socket.bytesWritten - socket.writableLength;
      if (sent !== written || socket.writableLength === 0) moved_ms = performance.now();
      written = sent;
      if (silenceSince(moved_ms) <= stalled_max_ms) return;
      socket.destroy(new Error(texts.stalled(stalled_max_ms / 1_000)));
    });
    on.joined(name);
    await new Promise<void>((resolve) => {
      if (socket.closed) resolve();
      else socket.once('close', () => resolve());
    });
    over.abort();
    on.left(name, reason);
    return reason;
  }
}

export interface EndpointNeeds {
  readonly signal: AbortSignal;
  readonly log: Pick<DriverLog, 'info' | 'warn' | 'debug'>;
  /** Receives each frame of a station. */
  readonly frame: (endpoint: Endpoint, frame: Frame, peer: string) => void;
}

/** Longer than any pause between the bytes of one frame. */
const stall_ms = 200;
/** Bytes of a station that are no frame are not counted as a loss. */
const uncounted: FramerTally = {
  skipped: () => undefined,
  badChecksum: () => undefined,
  unknownId: () => undefined,
};

/** Opens the endpoint and keeps it open until the signal aborts. */
export class Endpoint {
  readonly name: string;
  readonly options: EndpointOptions;
  readonly tally = new EndpointTally();
  /** Resolves when the signal has aborted and everything is closed. */
  readonly ended: Promise<void>;
  readonly #needs: EndpointNeeds;
  readonly #peers = new Set<string>();
  #relay: Relay | undefined;
  #own_ports: readonly number[] = [];
  #wasUp: boolean | undefined;
  #isFull = false;

  constructor(options: EndpointOptions, needs: EndpointNeeds) {
    this.options = options;
    this.#needs = needs;
    this.name = options.name ?? `${options.kind.replace('_', ' ')} ${options.host}:${options.port}`;
    this.ended = serveDevice({
      signal: needs.signal,
      limits: link_retry,
      run: async (_signal, onUp) => runMedium(options, this.#hostOf(onUp)),
      onState: (state) => {
        if ('reason' in state) this.#report(false, state.reason);
      },
    });
  }

  /** Sends the bytes of one frame to every station, and counts it for each of them. */
  relay(bytes: Uint8Array): void {
    if (this.#relay) this.#relay(bytes);
    else this.tally.drop('no_peer');
  }

  /** Ports of this machine that its frames come from. */
  get own_ports(): readonly number[] {
    return this.#own_ports;
  }

  stats(): EndpointStats {
    const { name, tally } = this;
    const { to_stations, to_vehicles, refused_clients } = tally;
    const counts = { to_stations, to_vehicles, refused_clients, dropped: { ...tally.dropped } };
    return { name, up: this.#relay !== undefined, peers: [...this.#peers], ...counts };
  }

  #hostOf(onUp: () => void): EndpointHost {
    const { signal, log } = this.#needs;
    const { name: endpoint, tally } = this;
    return {
      signal,
      tally,
      opened: (relay, ports) => {
        this.#relay = relay;
        this.#own_ports = ports;
        this.#report(true);
        onUp();
      },
      closed: () => {
        this.#relay = undefined;
      },
      joined: (peer) => {
        this.#peers.add(peer);
        log.info({ endpoint, peer }, texts.joined);
      },
      left: (peer, reason) => {
        this.#peers.delete(peer);
        this.#isFull = false;
        log.info({ endpoint, peer, reason }, texts.left);
      },
      refused: () => {
        tally.refused_clients += 1;
        this.#refuse();
      },
      overrun: () => tally.drop('flood'),
      datagram: (bytes, peer, { isRefused }) => this.#datagram(bytes, peer, isRefused),
      stream: (peer, over) => openStream((frame) => this.#needs.frame(this, frame, peer), over),
    };
  }

  #datagram(bytes: Uint8Array, peer: string, isRefused: boolean): boolean {
    let frames = 0;
    parseDatagram(bytes, {
      tally: uncounted,
      frame: (frame) => {
        frames += 1;
        if (isRefused) this.tally.drop('refused_peer');
        else this.#needs.frame(this, frame, peer);
      },
      unknown: isRefused ? undefined : (frame) => this.#needs.frame(this, frame, peer),
    });
    if (isRefused && frames > 0) this.#refuse();
    return frames > 0;
  }

  #refuse(): void {
    const stations = this.#peers.size;
    if (!this.#isFull) this.#needs.log.warn({ endpoint: this.name, stations }, texts.full);
    this.#isFull = true;
  }

  #report(isUp: boolean, reason?: string): void {
    if (this.#wasUp === isUp) return;
    this.#wasUp = isUp;
    const { log } = this.#needs;
    if (isUp) log.info({ endpoint: this.name }, texts.opened);
    else log.warn({ endpoint: this.name, reason }, texts.lost);
  }
}

function openStream(accept: (frame: FrameView) => void, over: AbortSignal): (chunk: Uint8Array) => void {
  const framer = new StreamFramer({ tally: uncounted, frame: accept, unknown: accept });
  let pushed_ms = 0;
  every(stall_ms, over, () => {
    if (framer.pending > 0 && performance.now() - pushed_ms > stall_ms) framer.stalled();
  });
  return (chunk) => {
    pushed_ms = performance.now();
    framer.push(chunk);
  };
}

async function runMedium(options: EndpointOptions, host: EndpointHost): Promise<void> {
  switch (options.kind) {
    case 'udp_listen':
      return runUdpListen(options, host);
    case 'udp_client':
      return runUdpClient(options, host);
    case 'tcp_listen':
      return runTcpListen(options, host);
    case 'tcp_client':
      return runTcpClient(options, host);
  }
}
