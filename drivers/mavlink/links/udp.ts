/** MAVLink over UDP: listens for any sender, or exchanges frames with one address from a fixed port. */
import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { isIP, isIPv4, isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { DeviceUnreachable, messageOf } from '../../../src/platform/errors.ts';
import { aborted, every } from '../../../src/platform/time.ts';
import type { LinkOptions } from '../options.ts';
import type { MediumHost, Send } from './medium.ts';
import { type Address, hostOf, nameOf, type Peer, peer_silence_max_ms, Peers } from './peers.ts';
import { serveUdp, TurnBudget } from './sockets.ts';
import { texts } from './texts.ts';

type UdpListen = Extract<LinkOptions, { kind: 'udp_listen' }>;
type UdpClient = Extract<LinkOptions, { kind: 'udp_client' }>;

const lookup_every_ms = 10_000;

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
  /** The configured host receives what there is to send: its address is no claim of a sender. */
  const isNamed = (host: string): boolean => host === remote?.host;
  const recent = (peer: string): readonly Peer[] => peers.named(peer, performance.now());
  const turn = new TurnBudget();
  socket.on('message', (bytes, from) => {
    if (!turn.take(bytes.length)) {
      medium.overrun(bytes.length);
      return;
    }
    const now_ms = performance.now();
    const reception = medium.datagram(bytes, nameOf(from), now_ms);
    if (reception === 'accepted') peers.received(from, bytes.length, now_ms);
    else if (reception === 'behind') peers.behind(from, bytes.length, now_ms);
  });
  let isClosing = false;
  const send: Send = (bytes, peer) => {
    // A datagram that waits here would be sent late: another one behind it, too.
    if (isClosing || socket.getSendQueueCount() > 0) return false;
    const to = peer === undefined ? peers.all(performance.now()) : recent(peer);
    const allowed = to.filter((each) => isNamed(each.host) || each.take(bytes.length));
    const targets = peer === undefined && remote ? withRemote(remote, allowed) : allowed;
    // An unreachable peer is detected by its silence, like every other loss.
    for (const { host, port } of targets) socket.send(bytes, port, host, () => undefined);
    return targets.length > 0;
  };
  await serveUdp(socket, {
    own,
    signal: medium.signal,
    opened() {
      // Without this the system refuses to send to a broadcast address.
      if (remote && !isIPv6(own.host)) socket.setBroadcast(true);
      medium.opened({
        send,
        discard() {
          // Closing the socket is the only way to drop its waiting datagrams.
          if (socket.getSendQueueCount() > 0) socket.emit('error', new Error(texts.unsent_discarded));
        },
        isNamed: (peer) => isNamed(hostOf(peer)),
        allows: (peer, bytes) => recent(peer).some((each) => isNamed(each.host) || each.allows(bytes)),
      });
    },
    closing() {
      isClosing = true;
    },
    fault: (error) =>
      new DeviceUnreachable(texts.udp_failed(own.host, own.port, error.message), { cause: error }),
  });
}

/** A vehicle that waits for a first frame receives ours also while others, at other addresses, send to this port. */
function withRemote(remote: Address, peers: readonly Address[]): readonly Address[] {
  if (isBroadcast(remote.host)) return [remote];
  return peers.some(({ host }) => host === remote.host) ? peers : [...peers, remote];
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
