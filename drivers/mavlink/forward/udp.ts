/** Endpoints over UDP: stations that send first, or one station with a fixed address. */
import { createSocket, type RemoteInfo } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { isIPv6 } from 'node:net';
import { DeviceUnreachable, messageOf } from '../../../src/platform/errors.ts';
import { aborted } from '../../../src/platform/time.ts';
import { serveUdp, TurnBudget } from '../links/sockets.ts';
import type { EndpointOptions } from '../options.ts';
import { plainIp } from '../../../src/platform/networks.ts';
import { isPublicIp } from '../../../src/platform/public-ip.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import { nameOf, Peer } from '../links/peers.ts';
import type { EndpointHost } from './endpoint-host.ts';

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

export async function runUdpClient({ host, port }: UdpClient, on: EndpointHost): Promise<void> {
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
