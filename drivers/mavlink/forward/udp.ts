/** Endpoints over UDP: stations that send first, or one station with a fixed address. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { isIPv6 } from 'node:net';
import { DeviceUnreachable, messageOf } from '../../../src/errors.ts';
import { aborted } from '../../../src/platform/time.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import { untilLost } from '../links/medium.ts';
import { TurnBudget } from '../wire/turn-budget.ts';
import type { EndpointOptions } from './endpoint-options.ts';
import type { EndpointHost } from './endpoint.ts';

type UdpListen = Extract<EndpointOptions, { kind: 'udp_listen' }>;
type UdpClient = Extract<EndpointOptions, { kind: 'udp_client' }>;

/** A station that sends nothing for this long is gone: its port may belong to another process. */
const silence_max_ms = 15_000;
/** Datagrams that the system has not accepted yet. */
const unsent_max = 256;

interface Peer {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  received_ms: number;
}

export async function runUdpListen({ host, port, peers_max }: UdpListen, on: EndpointHost): Promise<void> {
  const peers: Peer[] = [];
  const recent = (): readonly Peer[] => {
    const now_ms = performance.now();
    for (let at = peers.length - 1; at >= 0; at -= 1) {
      const peer = peers[at];
      if (!peer || silenceSince(peer.received_ms, now_ms) <= silence_max_ms) continue;
      peers.splice(at, 1);
      on.left(peer.name);
    }
    return peers;
  };
  const known = ({ address, port: from }: RemoteInfo): Peer | undefined =>
    peers.find((each) => each.port === from && each.host === address);
  await serve({ host, port }, on, recent, (bytes, from) => {
    const peer = known(from);
    const isFull = !peer && recent().length >= peers_max;
    // A datagram without a frame is not from a station.
    if (!on.datagram(bytes, nameOf(from), { isRefused: isFull }) || isFull) return;
    if (peer) peer.received_ms = performance.now();
    else {
      peers.push({
        name: nameOf(from),
        host: from.address,
        port: from.port,
        received_ms: performance.now(),
      });
      on.joined(nameOf(from));
    }
  });
}

export async function runUdpClient({ host, port }: UdpClient, on: EndpointHost): Promise<void> {
  const found = await Promise.race([lookup(host), aborted(on.signal)]).catch((error: unknown) => {
    throw new DeviceUnreachable(messageOf(error), { cause: error });
  });
  if (!found) return;
  const { address } = found;
  const name = nameOf({ address, port });
  const peer: Peer = { name, host: address, port, received_ms: 0 };
  on.joined(name);
  try {
    const own = { host: isIPv6(address) ? '::' : '0.0.0.0', port: 0 };
    await serve(
      own,
      on,
      () => [peer],
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
  peersOf: () => readonly Peer[],
  receive: (bytes: Uint8Array, from: RemoteInfo) => void,
): Promise<void> {
  const socket = createSocket(isIPv6(own.host) ? 'udp6' : 'udp4');
  const lost = new Promise<never>((_, reject) => {
    socket.on('error', (error) => reject(new DeviceUnreachable(error.message, { cause: error })));
  });
  lost.catch(() => undefined);
  const turn = new TurnBudget();
  socket.on('message', (bytes, from) => {
    if (turn.take(bytes.length)) receive(bytes, from);
    else on.overrun();
  });
  try {
    await Promise.race([bound(socket, own), lost]);
    on.opened(
      (bytes) => {
        const peers = peersOf();
        if (peers.length === 0) on.tally.drop('no_peer');
        for (const { host, port } of peers) {
          if (socket.getSendQueueCount() >= unsent_max) on.tally.drop('slow');
          else {
            // A station that is not listening is treated like a station that is switched off.
            socket.send(bytes, port, host, () => undefined);
            on.tally.to_stations += 1;
          }
        }
      },
      [socket.address().port],
    );
    await untilLost(lost, on.signal);
  } finally {
    on.closed();
    await new Promise<void>((resolve) => {
      socket.close(() => resolve());
    });
  }
}

async function bound(
  socket: Socket,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<void> {
  await new Promise<void>((resolve) => {
    socket.bind({ address: host, port, exclusive: true }, resolve);
  });
}

function nameOf({ address, port }: Pick<RemoteInfo, 'address' | 'port'>): string {
  return isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`;
}
