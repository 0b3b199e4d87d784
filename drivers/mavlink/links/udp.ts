/** MAVLink over UDP: listens for any sender, or exchanges frames with one address from a fixed port. */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { DeviceUnreachable, messageOf } from '../../../src/errors.ts';
import { aborted, every } from '../../../src/platform/time.ts';
import { silenceSince } from '../../../src/platform/stalls.ts';
import { TurnBudget } from '../wire/turn-budget.ts';
import type { LinkOptions } from './link-options.ts';
import { type MediumHost, type Send, untilLost } from './medium.ts';
import { texts } from './texts.ts';

type UdpListen = Extract<LinkOptions, { kind: 'udp_listen' }>;
type UdpClient = Extract<LinkOptions, { kind: 'udp_client' }>;

/** After this silence nothing is sent to a peer: its port may belong to another process. */
export const peer_silence_max_ms = 15_000;
const peers_max = 64;
/** Limit for the ports of one host. */
const host_peers_max = 32;
const lookup_every_ms = 10_000;

interface Address {
  readonly host: string;
  readonly port: number;
}

export async function runUdpListen({ host, port }: UdpListen, medium: MediumHost): Promise<void> {
  await serve({ own: { host, port }, remote: undefined }, medium);
}

/** Sends to the configured address until an answer arrives, then to the source of the answers. */
export async function runUdpClient({ host, port, local_port }: UdpClient, medium: MediumHost): Promise<void> {
  const remote = await Promise.race([resolved({ host, port }), aborted(medium.signal)]);
  if (!remote) return;
  const family = isIPv6(remote.host) ? 6 : 4;
  const own = { host: family === 6 ? '::' : '0.0.0.0', port: local_port };
  const following = new AbortController();
  const signal = AbortSignal.any([medium.signal, following.signal]);
  const latest = { ...remote };
  // A name may later resolve to another address; periodic lookups are simpler than detection. The socket has one family.
  if (isIP(host) === 0) {
    every(lookup_every_ms, signal, () => {
      resolved({ host, port }, family).then(
        (now) => Object.assign(latest, now),
        () => undefined,
      );
    });
  }
  try {
    await serve({ own, remote: latest }, medium);
  } finally {
    following.abort();
  }
}

async function resolved({ host, port }: Address, family: 0 | 4 | 6 = 0): Promise<Address> {
  try {
    return { host: (await lookup(host, { family })).address, port };
  } catch (error) {
    throw new DeviceUnreachable(texts.unresolved(host, messageOf(error)), { cause: error });
  }
}

interface Ends {
  readonly own: Address;
  /** Where to send while no peer is known. */
  readonly remote: Address | undefined;
}

async function serve({ own, remote }: Ends, medium: MediumHost): Promise<void> {
  const socket = createSocket(isIPv6(own.host) ? 'udp6' : 'udp4');
  const peers = new Peers(medium.silence_max_ms ?? peer_silence_max_ms);
  const lost = new Promise<never>((_, reject) => {
    socket.on('error', (error) => {
      reject(new DeviceUnreachable(texts.udp_failed(own.host, own.port, error.message), { cause: error }));
    });
  });
  lost.catch(() => undefined);
  const turn = new TurnBudget();
  socket.on('message', (bytes, from) => {
    if (!turn.take(bytes.length)) {
      medium.overrun(bytes.length);
      return;
    }
    const now_ms = performance.now();
    if (medium.datagram(bytes, peers.nameOf(from), now_ms)) peers.received(from, now_ms);
  });
  let isClosing = false;
  try {
    await Promise.race([bound(socket, own), lost]);
    // Without this the system refuses to send to a broadcast address.
    if (remote && !isIPv6(own.host)) socket.setBroadcast(true);
    const send: Send = (bytes, peer) => {
      // A datagram that waits here would be sent late: another one behind it, too.
      if (isClosing || socket.getSendQueueCount() > 0) return false;
      const to = peer === undefined ? peers.all(performance.now()) : peers.named(peer, performance.now());
      // Vehicles that wait for a first frame receive broadcasts, also when others have answered already.
      const is_unaddressed = peer === undefined && remote && (to.length === 0 || isBroadcast(remote.host));
      const targets = is_unaddressed ? [remote] : to;
      // An unreachable peer is detected by its silence, like every other loss.
      for (const { host, port } of targets) socket.send(bytes, port, host, () => undefined);
      return targets.length > 0;
    };
    medium.opened(send, () => {
      // Closing the socket is the only way to drop its waiting datagrams.
      if (socket.getSendQueueCount() > 0) socket.emit('error', new Error(texts.unsent_discarded));
    });
    await untilLost(lost, medium.signal);
  } finally {
    isClosing = true;
    await closed(socket);
  }
}

async function bound(socket: Socket, { host, port }: Address): Promise<void> {
  await new Promise<void>((resolve) => {
    socket.bind({ address: host, port, exclusive: true }, resolve);
  });
}

async function closed(socket: Socket): Promise<void> {
  await new Promise<void>((resolve) => {
    socket.close(resolve);
  });
}

/** Whether an address is the broadcast address of a local network. */
export function isBroadcast(host: string): boolean {
  if (host === '255.255.255.255') return true;
  if (!isIPv4(host)) return false;
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return own.some(({ family, address, netmask }) => {
    if (family !== 'IPv4' || netmask === '255.255.255.255') return false;
    const host_bits = ~bitsOf(netmask);
    return (bitsOf(host) | 0) === (bitsOf(address) | host_bits);
  });
}

function bitsOf(address: string): number {
  return address.split('.').reduce((bits, part) => (bits << 8) | Number(part), 0);
}

function nameOf({ address, port }: RemoteInfo): string {
  return isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`;
}

interface Peer extends Address {
  readonly name: string;
  received_ms: number;
}

/** The recent peers. They are few: a linear search costs less than a formatted key for each datagram. */
class Peers {
  readonly #silence_max_ms: number;
  #peers: readonly Peer[] = [];

  constructor(silence_max_ms: number) {
    this.#silence_max_ms = silence_max_ms;
  }

  nameOf(from: RemoteInfo): string {
    return this.#at(from)?.name ?? nameOf(from);
  }

  received(from: RemoteInfo, now_ms: number): void {
    const known = this.#at(from);
    if (known) {
      known.received_ms = now_ms;
      return;
    }
    const { address: host, port } = from;
    this.#evict(host, now_ms);
    this.#peers = [...this.#peers, { name: nameOf(from), host, port, received_ms: now_ms }];
  }

  /** The newest peer always gets a slot: the longest silent peer of a full host, or of all, is dropped. */
  #evict(host: string, now_ms: number): void {
    const ofHost = this.#peers.filter((peer) => peer.host === host);
    if (this.#peers.length >= peers_max) this.#dropSilent(now_ms);
    const full =
      ofHost.length >= host_peers_max ? ofHost : this.#peers.length >= peers_max ? this.#peers : [];
    const [oldest] = full.toSorted((a, b) => a.received_ms - b.received_ms);
    if (oldest) this.#peers = this.#peers.filter((peer) => peer !== oldest);
  }

  all(now_ms: number): readonly Address[] {
    this.#dropSilent(now_ms);
    return this.#peers;
  }

  named(name: string, now_ms: number): readonly Address[] {
    this.#dropSilent(now_ms);
    return this.#peers.filter((peer) => peer.name === name);
  }

  #at({ address, port }: RemoteInfo): Peer | undefined {
    for (const peer of this.#peers) if (peer.port === port && peer.host === address) return peer;
    return undefined;
  }

  #dropSilent(now_ms: number): void {
    this.#peers = this.#peers.filter(
      ({ received_ms }) => silenceSince(received_ms, now_ms) <= this.#silence_max_ms,
    );
  }
}
