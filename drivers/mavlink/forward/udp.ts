/** Endpoints over UDP: stations that send first, or one station with a fixed address. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { isIPv6 } from 'node:net';
import { DeviceUnreachable, messageOf } from '../../../src/errors.ts';
import { aborted } from '../../../src/platform/time.ts';
import { untilLost } from '../links/medium.ts';
import { TurnBudget } from '../wire/turn-budget.ts';
import type { EndpointOptions } from './endpoint-options.ts';
import type { EndpointHost } from './endpoint.ts';
import { mayReceive, Stations } from './stations.ts';

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
