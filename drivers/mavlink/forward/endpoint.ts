/** One endpoint: stations receive the frames of vehicles over it and send theirs. Reopens after a loss, ends with its signal. */
import { createSocket, type RemoteInfo } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { connect, createServer, isIPv6, type Socket } from 'node:net';
import { addAbortSignal } from 'node:stream';
import { serveDevice } from '../../../src/toolkit/device/device-session.ts';
import { link_retry } from '../../../src/toolkit/device/retry.ts';
import type { DriverLog } from '../../../src/toolkit/driver/driver.ts';
import { DeviceUnreachable, messageOf } from '../../../src/platform/errors.ts';
import { plainIp } from '../../../src/platform/networks.ts';
import { isPublicIp } from '../../../src/platform/public-ip.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import { aborted, every } from '../../../src/platform/time.ts';
import { nameOf, Peer } from '../links/peers.ts';
import { readPaced, serveTcp, serveUdp, streamReader, TurnBudget } from '../links/sockets.ts';
import { addressOf, type EndpointOptions } from '../options.ts';
import type { Frame, FrameView } from '../wire/frame.ts';
import { parseDatagram } from '../wire/framer.ts';

/** Why a frame was not forwarded. */
const drop_reasons = {
  /** From vehicles: no station is connected; the station does not read fast enough, or its public address may be forged. */
  no_peer: 0,
  slow: 0,
  public_peer: 0,
  /** Of an unknown message, and no vehicle that is received from there has its system id. */
  unknown: 0,
  /**
   * To vehicles: the endpoint or the driver is read-only; the vehicle is not forwarded here; its system is unknown.
   */
  read_only: 0,
  filtered: 0,
  no_vehicle: 0,
  /** It came back through a router or another endpoint; it has the ids of this kit; it would change the signing key. */
  looped: 0,
  own_ids: 0,
  blocked: 0,
  /** Above `to_vehicles_bytes_per_s`; the link to the vehicle accepts no frames; the endpoint has its maximum of stations. */
  rate: 0,
  link_refused: 0,
  refused_peer: 0,
  /** Datagrams that were not read: the station sends more than the event loop may handle in one turn. */
  flood: 0,
};
export type DropReason = keyof typeof drop_reasons;

export interface EndpointStats {
  readonly name: string;
  readonly up: boolean;
  /** Addresses of the stations. */
  readonly peers: readonly string[];
  /** Frames from vehicles, counted for each station. */
  readonly to_stations: number;
  readonly to_vehicles: number;
  /** Connections that were refused since the maximum was reached. */
  readonly refused_clients: number;
  readonly dropped: Readonly<Record<DropReason, number>>;
}

/** Sends the bytes of one frame to every station, and counts it for each of them. */
type Relay = (bytes: Uint8Array) => void;

export interface EndpointNeeds {
  readonly signal: AbortSignal;
  readonly log: Pick<DriverLog, 'info' | 'warn' | 'debug'>;
  /** Receives each frame of a station. */
  readonly frame: (endpoint: Endpoint, frame: Frame, peer: string) => void;
}

/** Opens the endpoint and keeps it open until the signal aborts. */
export class Endpoint {
  readonly name: string;
  readonly options: EndpointOptions;
  readonly signal: AbortSignal;
  /** Resolves when the signal has aborted and everything is closed. */
  readonly ended: Promise<void>;
  /** Ports of this machine that its frames come from. */
  own_ports: readonly number[] = [];
  to_stations = 0;
  to_vehicles = 0;
  #refused_clients = 0;
  readonly #dropped = { ...drop_reasons };
  readonly #needs: EndpointNeeds;
  readonly #peers = new Set<string>();
  #relay: Relay | undefined;
  #onUp = (): void => undefined;
  #wasUp: boolean | undefined;
  #isFull = false;

  constructor(options: EndpointOptions, needs: EndpointNeeds) {
    this.options = options;
    this.#needs = needs;
    this.signal = needs.signal;
    this.name = options.name ?? addressOf(options);
    this.ended = serveDevice({
      signal: needs.signal,
      limits: link_retry,
      run: async (_signal, onUp) => {
        this.#onUp = onUp;
        await runMedium(options, this);
      },
      onState: (state) => {
        if ('reason' in state) this.#report(false, state.reason);
      },
    });
  }

  /** Sends the bytes of one frame to every station, and counts it for each of them. */
  relay(bytes: Uint8Array): void {
    if (this.#relay) this.#relay(bytes);
    else this.drop('no_peer');
  }

  drop(reason: DropReason): void {
    this.#dropped[reason] += 1;
  }

  stats(): EndpointStats {
    const { name, to_stations, to_vehicles } = this;
    const counts = { to_stations, to_vehicles, refused_clients: this.#refused_clients };
    const dropped = { ...this.#dropped };
    return { name, up: this.#relay !== undefined, peers: [...this.#peers], ...counts, dropped };
  }

  // For its medium.

  opened(relay: Relay, own_ports: readonly number[]): void {
    this.#relay = relay;
    this.own_ports = own_ports;
    this.#report(true);
    this.#onUp();
  }

  closed(): void {
    this.#relay = undefined;
  }

  joined(peer: string): void {
    this.#peers.add(peer);
    this.#needs.log.info({ endpoint: this.name, peer }, texts.joined);
  }

  /** Also for a connection that has never come about. */
  left(peer: string, reason?: string): void {
    if (!this.#peers.delete(peer)) return;
    this.#isFull = false;
    this.#needs.log.info({ endpoint: this.name, peer, reason }, texts.left);
  }

  /** Counts a connection above the maximum. */
  refused(): void {
    this.#refused_clients += 1;
    this.#warnFull();
  }

  /** Parses a datagram; returns whether it contained a frame. Frames of a refused station are counted and not forwarded. */
  datagram(bytes: Uint8Array, peer: string, isRefused = false): boolean {
    let frames = 0;
    parseDatagram(bytes, {
      frame: (frame) => {
        frames += 1;
        if (isRefused) this.drop('refused_peer');
        else this.#needs.frame(this, frame, peer);
      },
      unknown: isRefused ? undefined : (frame) => this.#needs.frame(this, frame, peer),
    });
    if (isRefused && frames > 0) this.#warnFull();
    return frames > 0;
  }

  /** Returns a parser for the bytes of a connection, until `over` aborts. */
  reader(peer: string, over: AbortSignal): (chunk: Uint8Array) => void {
    const frame = (view: FrameView): void => this.#needs.frame(this, view, peer);
    return streamReader({ frame, unknown: frame }, over);
  }

  #warnFull(): void {
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

async function runMedium(options: EndpointOptions, on: Endpoint): Promise<void> {
  switch (options.kind) {
    case 'udp_listen':
      return runUdpListen(options, on);
    case 'udp_client':
      return runUdpClient(options, on);
    case 'tcp_listen':
      return runTcpListen(options, on);
    case 'tcp_client':
      return runTcpClient(options, on);
  }
}

type UdpListen = Extract<EndpointOptions, { kind: 'udp_listen' }>;
type UdpClient = Extract<EndpointOptions, { kind: 'udp_client' }>;

/** Datagrams that the system has not accepted yet. */
const unsent_max = 256;

interface Station {
  readonly host: string;
  readonly port: number;
}

async function runUdpListen({ host, port, peers_max }: UdpListen, on: Endpoint): Promise<void> {
  const stations = new Stations(peers_max, on);
  const recent = (bytes: number): readonly Station[] => {
    const all = stations.recent(performance.now());
    const allowed = all.filter((each) => mayReceive(each, bytes));
    for (let refused = all.length - allowed.length; refused > 0; refused -= 1) on.drop('public_peer');
    if (all.length === 0) on.drop('no_peer');
    return allowed;
  };
  await serve({ host, port }, on, recent, (bytes, from) => {
    const isFull = stations.isFullFor(from, performance.now());
    // A datagram without a frame is not from a station.
    if (!on.datagram(bytes, nameOf(from), isFull) || isFull) return;
    stations.received(from, bytes.length, performance.now());
  });
}

async function runUdpClient({ host, port }: UdpClient, on: Endpoint): Promise<void> {
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
        if (from.address === address && from.port === port) on.datagram(bytes, name);
      },
    );
  } finally {
    on.left(name);
  }
}

async function serve(
  own: { readonly host: string; readonly port: number },
  on: Endpoint,
  stationsFor: (bytes: number) => readonly Station[],
  receive: (bytes: Uint8Array, from: RemoteInfo) => void,
): Promise<void> {
  const socket = createSocket(isIPv6(own.host) ? 'udp6' : 'udp4');
  const turn = new TurnBudget();
  socket.on('message', (bytes, from) => {
    if (turn.take(bytes.length)) receive(bytes, from);
    else on.drop('flood');
  });
  await serveUdp(socket, {
    own,
    signal: on.signal,
    opened: () =>
      on.opened(
        (bytes) => {
          for (const { host, port } of stationsFor(bytes.length)) {
            if (socket.getSendQueueCount() >= unsent_max) on.drop('slow');
            else {
              // A station that is not listening is treated like a station that is switched off.
              socket.send(bytes, port, host, () => undefined);
              on.to_stations += 1;
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

export class Stations {
  readonly #max: number;
  readonly #on: Pick<Endpoint, 'joined' | 'left'>;
  #peers: readonly Peer[] = [];

  constructor(max: number, on: Pick<Endpoint, 'joined' | 'left'>) {
    this.#max = max;
    this.#on = on;
  }

  /** Whether a new station has no place. `now_ms` is monotonic. */
  isFullFor(from: RemoteInfo, now_ms: number): boolean {
    return !this.#at(from) && this.recent(now_ms).length >= this.#max;
  }

  /** Notes a frame of a station that has a place. */
  received(from: RemoteInfo, bytes: number, now_ms: number): void {
    const known = this.#at(from);
    const peer = known ?? new Peer(from, now_ms);
    peer.received(bytes, now_ms);
    if (known) return;
    this.#peers = [...this.#peers, peer];
    this.#on.joined(peer.name);
  }

  recent(now_ms: number): readonly Peer[] {
    const isRecent = ({ received_ms }: Peer): boolean => silenceSince(received_ms, now_ms) <= silence_max_ms;
    if (this.#peers.every(isRecent)) return this.#peers;
    const gone = this.#peers.filter((peer) => !isRecent(peer));
    this.#peers = this.#peers.filter(isRecent);
    for (const { name } of gone) this.#on.left(name);
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

async function runTcpListen({ host, port, clients_max }: TcpListen, on: Endpoint): Promise<void> {
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
            if (clients.size === 0) on.drop('no_peer');
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

async function runTcpClient({ host, port }: TcpClient, on: Endpoint): Promise<void> {
  const socket = connect({ host, port });
  addAbortSignal(on.signal, socket);
  socket.setTimeout(connect_timeout_ms, () => {
    socket.destroy(new Error(texts.connect_timeout(connect_timeout_ms / 1_000)));
  });
  const client = new Client(socket, `${host}:${port}`, on);
  socket.once('connect', () => {
    socket.setTimeout(0);
    on.opened(client.relay, [socket.localPort ?? 0]);
  });
  const reason = await client.ended;
  on.closed();
  if (!on.signal.aborted) throw new DeviceUnreachable(reason);
}

/** One station, from its connection on. */
class Client {
  /** Resolves with the reason when the connection has ended. */
  readonly ended: Promise<string>;
  readonly #socket: Socket;
  readonly #on: Endpoint;
  #corked = false;

  constructor(socket: Socket, name: string, on: Endpoint) {
    this.#socket = socket;
    this.#on = on;
    this.ended = this.#serve(name);
  }

  /** Writes a frame, or drops it if the station does not read; frames of one turn of the event loop are written together. */
  readonly relay: Relay = (bytes) => {
    const socket = this.#socket;
    if (socket.destroyed || socket.writableLength > unsent_bytes_max) {
      this.#on.drop('slow');
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
    this.#on.to_stations += 1;
  };

  close(): void {
    this.#socket.destroy();
  }

  async #serve(name: string): Promise<string> {
    const socket = this.#socket;
    const on = this.#on;
    let reason: string = texts.closed_by_peer;
    const over = new AbortController();
    const read = on.reader(name, over.signal);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, keepalive_ms);
    readPaced(socket, read);
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
    if (socket.connecting) socket.once('connect', () => on.joined(name));
    else on.joined(name);
    await new Promise<void>((resolve) => {
      if (socket.closed) resolve();
      else socket.once('close', () => resolve());
    });
    over.abort();
    on.left(name, reason);
    return reason;
  }
}

/** Sentences about endpoints that people read; tests refer to them by name. */
export const texts = {
  opened: 'endpoint opened',
  lost: 'endpoint lost; retrying',
  joined: 'station connected',
  left: 'station disconnected',
  full: 'endpoint has its maximum of stations; refusing others',
  own_ids: 'a station uses the ids of this kit; ignoring its frames, change its ids',
  own_link: 'a link receives from an endpoint of this driver; ignoring it, remove one of them',
  failed: (name: string, reason: string) => `${name}: ${reason}`,
  connect_timeout: (seconds: number) => `connection timed out after ${seconds} s`,
  closed_by_peer: 'connection closed by the other side',
  stalled: (seconds: number) => `the other side has accepted nothing for ${seconds} s`,
} as const;
