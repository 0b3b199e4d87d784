/**
 * A kit and a viewer behind a NAT each, in network namespaces, and an internet between them. Nothing of it is joined to the machine's own network.
 *
 *     kit 192.168.1.2 -- NAT 203.0.113.10 (symmetric, 600 ms) -- internet 203.0.113.1 -- NAT 203.0.113.20 -- viewer 192.168.2.2
 */
import type { ChildProcess } from 'node:child_process';
import { program } from '../peers.ts';
import { run } from '../temporary.ts';
import { startRelay } from './wan-lab.ts';
import { wireSettings } from './wan-relay.ts';

export type NatPlace = 'internet' | 'kit' | 'viewer';

export interface NatLab {
  /** Put before a command line to run it there. */
  readonly prefix: (place: NatPlace) => readonly string[];
  /** Bytes of IP packets with UDP that the kit has sent, as the kernel counts them. */
  readonly udpBytesOfKit: () => Promise<number>;
  /** The network of this place lets no UDP out from now on. */
  readonly blockUdp: (place: 'kit' | 'viewer') => Promise<void>;
}

/** Of the whole internet between the two. */
export const nat_lab_address = '203.0.113.1';
/** Of the kit: a satellite. */
const nat_lab_rtt_ms = 600;

/** Runs `fn` with fresh namespaces; removes them afterwards. Needs root. */
export async function withNatLab(fn: (lab: NatLab) => Promise<void>): Promise<void> {
  const id = process.pid;
  const name = (place: string): string => `kc-nat-${id}-${place}`;
  const places = ['internet', 'kit', 'kit-nat', 'viewer', 'viewer-nat'];
  const inside = async (place: string, ...words: readonly string[]): Promise<string> =>
    run('ip', 'netns', 'exec', name(place), ...words);
  const prefix = (place: NatPlace): readonly string[] => [program('ip'), 'netns', 'exec', name(place)];
  const children: ChildProcess[] = [];
  try {
    for (const place of places) {
      await run('ip', 'netns', 'add', name(place));
      await inside(place, 'ip', 'link', 'set', 'lo', 'up');
      // As most hosts: BBR, which this machine may have, sends the parts of an offer 20 ms apart over such a link.
      await inside(place, 'sysctl', '-qw', 'net.ipv4.tcp_congestion_control=reno');
    }
    await inside('internet', 'ip', 'link', 'add', 'br0', 'type', 'bridge');
    await inside('internet', 'ip', 'addr', 'add', `${nat_lab_address}/24`, 'dev', 'br0');
    await inside('internet', 'ip', 'link', 'set', 'br0', 'up');
    // What goes to private addresses is lost without a word, as in the real one: an error would end the relay of coturn.
    const nowhere = '203.0.113.254';
    await inside('internet', 'ip', 'neigh', 'add', nowhere, 'lladdr', '02:00:00:00:00:01', 'dev', 'br0');
    await inside('internet', 'ip', 'route', 'add', 'default', 'via', nowhere);
    const wire = (place: NatPlace) => ({
      name: place,
      near: { namespace: name(place), device: 'eth0' },
      far: { namespace: name(`${place}-nat`), device: 'lan' },
    });
    const relay = await startRelay([wire('kit'), wire('viewer')], children);
    for (const [n, place] of (['kit', 'viewer'] as const).entries()) {
      const nat = `${place}-nat`;
      const net = `192.168.${n + 1}`;
      await inside(nat, 'ip', 'link', 'add', 'wan', 'type', 'veth', 'peer', place, 'netns', name('internet'));
      await inside('internet', 'ip', 'link', 'set', place, 'master', 'br0', 'up');
      await inside(nat, 'ip', 'addr', 'add', `203.0.113.${10 * (n + 1)}/24`, 'dev', 'wan');
      await inside(nat, 'ip', 'addr', 'add', `${net}.1/24`, 'dev', 'lan');
      for (const device of ['wan', 'lan']) await inside(nat, 'ip', 'link', 'set', device, 'up');
      await inside(place, 'ip', 'addr', 'add', `${net}.2/24`, 'dev', 'eth0');
      await inside(place, 'ip', 'link', 'set', 'eth0', 'up');
      await inside(place, 'ip', 'route', 'add', 'default', 'via', `${net}.1`);
      await inside(nat, 'sysctl', '-qw', 'net.ipv4.ip_forward=1');
      // With random ports each pair of addresses has another one: what STUN says is no way in.
      const symmetric = place === 'kit' ? ['fully-random'] : [];
      await inside(nat, 'nft', 'add', 'table', 'ip', 'nat');
      await inside(
        nat,
        'nft',
        'add',
        'chain',
        'ip',
        'nat',
        'out',
        '{ type nat hook postrouting priority 100; }',
      );
      await inside(
        nat,
        'nft',
        'add',
        'rule',
        'ip',
        'nat',
        'out',
        'oifname',
        'wan',
        'masquerade',
        ...symmetric,
      );
      // As routers do: an answer that a port is closed would end the relay of coturn.
      const input = ['ip', 'nat', 'in'];
      await inside(nat, 'nft', 'add', 'chain', ...input, '{ type filter hook input priority 0; }');
      await inside(nat, 'nft', 'add', 'rule', ...input, 'iifname', 'wan', 'ct', 'state', 'new', 'drop');
    }
    const counter = [
      'nft',
      'add',
      'rule',
      'ip',
      'count',
      'forward',
      'iifname',
      'lan',
      'meta',
      'l4proto',
      'udp',
    ];
    await inside('kit-nat', 'nft', 'add', 'table', 'ip', 'count');
    await inside('kit-nat', 'nft', 'add', 'counter', 'ip', 'count', 'video');
    const chain = ['ip', 'count', 'forward', '{ type filter hook forward priority 0; }'];
    await inside('kit-nat', 'nft', 'add', 'chain', ...chain);
    await inside('kit-nat', ...counter, 'counter', 'name', 'video');
    await relay({ order: 'set', wire: 'kit', settings: wireSettings.parse({ rtt_ms: nat_lab_rtt_ms }) });
    await fn({
      prefix,
      async udpBytesOfKit() {
        const listed = await inside('kit-nat', 'nft', 'list', 'counter', 'ip', 'count', 'video');
        return Number(/bytes (\d+)/u.exec(listed)?.[1]);
      },
      async blockUdp(place) {
        const chain = ['ip', 'block', 'forward'];
        await inside(`${place}-nat`, 'nft', 'add', 'table', 'ip', 'block');
        await inside(
          `${place}-nat`,
          'nft',
          'add',
          'chain',
          ...chain,
          '{ type filter hook forward priority 0; }',
        );
        await inside(`${place}-nat`, 'nft', 'add', 'rule', ...chain, 'meta', 'l4proto', 'udp', 'drop');
      },
    });
  } finally {
    for (const child of children) child.kill('SIGKILL');
    for (const place of places) await run('ip', 'netns', 'del', name(place)).catch(() => undefined);
  }
}
