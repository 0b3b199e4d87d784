/**
 * A field kit's gateway with two WANs in network namespaces: a satellite link and a cellular link, each to a provider
 * that translates addresses, and an internet behind both. Nothing of it is joined to the machine's own network.
 *
 *     gateway: sat0  100.64.0.2 -- provider A (203.0.113.10) --\
 *              wwan0 10.64.0.2  -- provider B (203.0.113.20) ---- internet: 198.18.0.1, 198.18.0.2
 *
 * Each WAN has IPv6 too, without translation: 2001:db8:a::2 and 2001:db8:b::2; the internet is 2001:db8:ffff::1 and ::2.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { within } from '../../../src/platform/time.ts';
import { enterNamespace } from './enter-namespace.ts';
import { program } from '../peers.ts';
import { run } from '../temporary.ts';
import {
  relayAnswer,
  type RelayOrder,
  type RelayWire,
  type WireSettings,
  wireSettings,
} from './wan-relay.ts';

const lab_wans = {
  sat0: {
    gateway: '100.64.0.2/24',
    provider: '100.64.0.1',
    outside: '203.0.113.10',
    internet: '203.0.113.1',
    prefix: '2001:db8:a:',
    transit: '2001:db8:aa:',
    metric: '100',
  },
  wwan0: {
    gateway: '10.64.0.2/24',
    provider: '10.64.0.1',
    outside: '203.0.113.20',
    internet: '203.0.113.17',
    prefix: '2001:db8:b:',
    transit: '2001:db8:bb:',
    metric: '700',
  },
} as const;
export type LabWan = keyof typeof lab_wans;

export const lab_targets = ['198.18.0.1', '198.18.0.2'] as const;
export const lab_targets_v6 = ['2001:db8:ffff::1', '2001:db8:ffff::2'] as const;
/** The address of each WAN as the internet sees it. */
export const lab_public_ip = { sat0: lab_wans.sat0.outside, wwan0: lab_wans.wwan0.outside } as const;
/** What listens on the targets. */
export const lab_ports = { stun: 3478, tcp: 443, what_is_my_ip: 8080 } as const;
/** What the name server of the internet answers. */
export const lab_name = { name: 'probe.example.org', address: '198.18.0.2' } as const;
/** A name for which the internet's name server answers a private address: that of a dish or a modem. */
export const lab_inner_name = { name: 'inner.example.org', address: '192.168.100.1' } as const;
/** A name of an IPv4 host as a name server that translates gives it (DNS64), and the target that it stands for. */
export const lab_dns64_name = { name: 'translated.example.org', address: '64:ff9b::c612:1' } as const;
/** How the internet's name server shows that the network translates (RFC 7050), and the targets as it translates them. */
export const lab_nat64 = {
  name: 'ipv4only.arpa',
  address: '64:ff9b::c000:aa',
  targets: [lab_dns64_name.address, '64:ff9b::c612:2'],
} as const;
/** A name with more addresses than a sentence names. */
export const lab_many_name = {
  name: 'many.example.org',
  addresses: Array.from({ length: 20 }, (_, n) => `192.168.7.${n + 1}`),
} as const;
/** Of each provider's portal. */
const portal = { http: 8081, dns: 5353, address: '192.0.2.80' } as const;

export interface WanLab {
  /** Name of the gateway's namespace, and what is put before a command line to run it there. */
  readonly gateway: { readonly namespace: string; readonly prefix: readonly string[] };
  /** Put before a command line to run it in the internet. */
  readonly internet: readonly string[];
  /** Moves this thread into the gateway; the returned function goes back. */
  enter(): () => void;
  /** Runs `ip` in the gateway. */
  ip(...args: readonly string[]): Promise<string>;
  /** Everything that is not named is as on an ideal wire. */
  set(wan: LabWan, settings: Partial<WireSettings>): Promise<void>;
  carrier(wan: LabWan, state: 'on' | 'off'): Promise<void>;
  /** The device vanishes, with its addresses and routes. */
  unplug(wan: LabWan): Promise<void>;
  /** A new device of that name appears and is configured like the old one. */
  plug(wan: LabWan): Promise<void>;
  /** Of wwan0, which has to have IPv6 alone: IPv4 in a tunnel to the internet, which has the default route. */
  dsLite(): Promise<void>;
  /** The provider drops echo requests. */
  filterIcmp(wan: LabWan, state: 'on' | 'off'): Promise<void>;
  /**
   * The provider's portal: it answers TCP and DNS in place of everybody and drops the rest. `echo`: all TCP and UDP is
   * dropped, and ICMP passes.
   */
  portal(wan: LabWan, state: 'on' | 'echo' | 'off'): Promise<void>;
  stop(): Promise<void>;
}

let labs = 0;
const name_start = 'kcw-';

/** Builds the lab. Needs root, `ip`, `nft` and `dnsmasq`. */
export async function startWanLab(): Promise<WanLab> {
  await removeOrphans();
  const id = `${name_start}${process.pid}-${(labs += 1)}`;
  const spaces = { gateway: `${id}-gw`, sat0: `${id}-a`, wwan0: `${id}-b`, internet: `${id}-net` };
  const children: ChildProcess[] = [];
  const stop = async (): Promise<void> => {
    for (const child of children) child.kill('SIGKILL');
    for (const name of Object.values(spaces)) await run('ip', 'netns', 'del', name).catch(() => undefined);
  };
  try {
    for (const name of Object.values(spaces)) {
      await run('ip', 'netns', 'add', name);
      await run('ip', '-n', name, 'link', 'set', 'lo', 'up');
      // Duplicate address detection would keep IPv6 addresses unusable for a second.
      await sysctl(name, 'net.ipv6.conf.default.accept_dad=0');
    }
    const wires = (['sat0', 'wwan0'] as const).map((name) => ({
      name,
      near: { namespace: spaces.gateway, device: name },
      far: { namespace: spaces[name], device: 'customer' },
    }));
    const relay = await startRelay(wires, children);
    for (const ip of lab_targets) await inside(spaces.internet, 'addr', 'add', `${ip}/32`, 'dev', 'lo');
    for (const ip of [...lab_targets_v6, ...lab_nat64.targets])
      await inside(spaces.internet, 'addr', 'add', `${ip}/128`, 'dev', 'lo');
    for (const wan of ['sat0', 'wwan0'] as const) await joinProvider(spaces, wan);
    for (const name of [spaces.sat0, spaces.wwan0]) await translate(name);
    await sysctl(spaces.gateway, 'net.ipv4.ping_group_range=0 2147483647');
    const internet = [program('ip'), 'netns', 'exec', spaces.internet, process.execPath];
    await startReady([...internet, script('fake-internet-process.ts'), ...lab_targets], children);
    const names = [lab_name, lab_inner_name, lab_dns64_name, lab_nat64].map(
      ({ name, address }) => `--address=/${name}/${address}`,
    );
    const many = lab_many_name.addresses.map((address) => `--host-record=${lab_many_name.name},${address}`);
    startNameServer(spaces.internet, [...names, ...many], children);
    for (const wan of ['sat0', 'wwan0'] as const) {
      const inside_isp = [program('ip'), 'netns', 'exec', spaces[wan], process.execPath];
      await startReady([...inside_isp, script('fake-portal-process.ts'), String(portal.http)], children);
      startNameServer(spaces[wan], [`--address=/#/${portal.address}`, `--port=${portal.dns}`], children);
    }
    return { ...handles(spaces, relay), dsLite: async () => startDsLite(spaces, children), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Removes what a test process that was killed has left behind. */
async function removeOrphans(): Promise<void> {
  const names = (await run('ip', 'netns', 'list')).split('\n').map((line) => line.split(' ')[0] ?? '');
  for (const name of names.filter((each) => each.startsWith(name_start))) {
    const owner = name.split('-')[1] ?? '';
    if (!existsSync(`/proc/${owner}`)) await run('ip', 'netns', 'del', name).catch(() => undefined);
  }
}

type Spaces = Readonly<Record<'gateway' | LabWan | 'internet', string>>;
type Relay = (order: RelayOrder) => Promise<void>;

function handles(spaces: Spaces, relay: Relay): Omit<WanLab, 'dsLite' | 'stop'> {
  const namespace = spaces.gateway;
  return {
    gateway: { namespace, prefix: [program('ip'), 'netns', 'exec', namespace] },
    internet: [program('ip'), 'netns', 'exec', spaces.internet],
    enter: () => enterNamespace(namespace),
    ip: async (...args) => inside(namespace, ...args),
    set: async (wire, settings) => relay({ order: 'set', wire, settings: wireSettings.parse(settings) }),
    carrier: async (wire, state) => relay({ order: 'carrier', wire, on: state === 'on' }),
    unplug: async (wire) => relay({ order: 'unplug', wire }),
    async plug(wire) {
      await relay({ order: 'plug', wire });
      await configureGateway(namespace, wire);
    },
    async filterIcmp(wan, state) {
      await nft(spaces[wan], 'flush', 'chain', 'inet', 'lab', 'forward');
      if (state === 'off') return;
      const echoes = ['meta', 'l4proto', '{ icmp, ipv6-icmp }', 'drop'];
      await nft(spaces[wan], 'add', 'rule', 'inet', 'lab', 'forward', ...echoes);
    },
    async portal(wan, state) {
      const isp = spaces[wan];
      await nft(isp, 'flush', 'chain', 'inet', 'lab', 'forward');
      await nft(isp, 'flush', 'chain', 'ip', 'nat', 'in');
      if (state === 'echo') {
        await nft(isp, 'add', 'rule', 'inet', 'lab', 'forward', 'meta', 'l4proto', '{ tcp, udp }', 'drop');
      }
      if (state !== 'on') return;
      const redirect = async (protocol: string, from: string, to: number): Promise<void> =>
        nft(
          isp,
          'add',
          'rule',
          'ip',
          'nat',
          'in',
          'iifname',
          'customer',
          protocol,
          'dport',
          from,
          'redirect',
          'to',
          `:${to}`,
        );
      await redirect('tcp', '1-65535', portal.http);
      await redirect('udp', '53', portal.dns);
      await nft(isp, 'add', 'rule', 'inet', 'lab', 'forward', 'drop');
    },
  };
}

/** RFC 6333 section 5.7 has the addresses within the tunnel. */
async function startDsLite({ gateway, internet }: Spaces, children: ChildProcess[]): Promise<void> {
  const [kit, translator] = [`${lab_wans.wwan0.prefix}:2`, lab_targets_v6[0]];
  const ends = [
    { namespace: gateway, device: 'ds0', own: '192.0.0.2/29', ways: [kit, translator] },
    { namespace: internet, device: 'aftr', own: '192.0.0.1/29', ways: [translator, kit] },
  ];
  for (const { namespace, device, own, ways } of ends) {
    const enter = [program('ip'), 'netns', 'exec', namespace, process.execPath];
    await startReady([...enter, script('ds-lite-process.ts'), device, ...ways], children);
    await address(namespace, device, own);
  }
  await inside(gateway, 'link', 'set', 'ds0', 'mtu', '1400');
  await inside(gateway, 'route', 'add', 'default', 'dev', 'ds0');
}

/** The provider's side of a WAN, its wire to the internet, and the gateway's side. */
async function joinProvider(spaces: Spaces, wan: LabWan): Promise<void> {
  const { provider, outside, internet, prefix, transit } = lab_wans[wan];
  const [isp, net] = [spaces[wan], spaces.internet];
  await run('ip', 'link', 'add', 'up0', 'netns', isp, 'type', 'veth', 'peer', 'name', wan, 'netns', net);
  await sysctl(isp, 'net.ipv4.ip_forward=1', 'net.ipv6.conf.all.forwarding=1');
  await address(isp, 'customer', `${provider}/24`, `${prefix}:1/64`);
  await address(isp, 'up0', `${outside}/28`, `${transit}:2/64`);
  await address(net, wan, `${internet}/28`, `${transit}:1/64`);
  await inside(isp, 'route', 'add', 'default', 'via', internet);
  await inside(isp, '-6', 'route', 'add', 'default', 'via', `${transit}:1`);
  await inside(net, '-6', 'route', 'add', `${prefix}:/64`, 'via', `${transit}:2`);
  await configureGateway(spaces.gateway, wan);
}

async function configureGateway(gateway: string, wan: LabWan): Promise<void> {
  const { gateway: own, provider, prefix, metric } = lab_wans[wan];
  await address(gateway, wan, own, `${prefix}:2/64`);
  await inside(gateway, 'route', 'add', 'default', 'via', provider, 'dev', wan, 'metric', metric);
  const via_v6 = ['via', `${prefix}:1`, 'dev', wan, 'metric', metric];
  await inside(gateway, '-6', 'route', 'add', 'default', ...via_v6);
}

async function address(name: string, device: string, ...addresses: readonly string[]): Promise<void> {
  await inside(name, 'link', 'set', device, 'up');
  for (const each of addresses) await inside(name, 'addr', 'add', each, 'dev', device);
}

async function translate(isp: string): Promise<void> {
  await nft(isp, 'add', 'table', 'inet', 'lab');
  await nft(isp, 'add', 'chain', 'inet', 'lab', 'forward', '{ type filter hook forward priority 0; }');
  await nft(isp, 'add', 'table', 'ip', 'nat');
  await nft(isp, 'add', 'chain', 'ip', 'nat', 'out', '{ type nat hook postrouting priority 100; }');
  await nft(isp, 'add', 'rule', 'ip', 'nat', 'out', 'oifname', 'up0', 'masquerade');
  await nft(isp, 'add', 'chain', 'ip', 'nat', 'in', '{ type nat hook prerouting priority -100; }');
}

/** dnsmasq in a namespace, with no name servers above it. */
function startNameServer(namespace: string, settings: readonly string[], children: ChildProcess[]): void {
  const plain = ['--keep-in-foreground', '--conf-file=/dev/null', '--no-resolv', '--no-hosts', '--user=root'];
  const args = ['netns', 'exec', namespace, program('dnsmasq'), ...plain, '--pid-file=', ...settings];
  children.push(spawn(program('ip'), args, { stdio: 'ignore' }));
}

/** Starts the process that carries frames over these wires; it is added to `children`. */
export async function startRelay(wires: readonly RelayWire[], children: ChildProcess[]): Promise<Relay> {
  const command = [process.execPath, script('wan-relay-process.ts'), JSON.stringify(wires)];
  const { child, nextLine } = await startReady(command, children);
  return async (order) => {
    const answer = nextLine();
    child.stdin?.write(`${JSON.stringify(order)}\n`);
    const { error } = relayAnswer.parse(JSON.parse(await answer));
    if (error !== null) throw new Error(`the relay refused ${JSON.stringify(order)}: ${error}`);
  };
}

const start_ms = 15_000;

/** Starts a process that prints `ready`, and ends when its standard input does: also when this process is killed. */
async function startReady([command = '', ...args]: readonly string[], children: ChildProcess[]) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  children.push(child);
  const waiting: ((line: string) => void)[] = [];
  createInterface(child.stdout).on('line', (line) => waiting.shift()?.(line));
  const nextLine = async (): Promise<string> => {
    const line = new Promise<string>((resolve) => {
      waiting.push(resolve);
    });
    const said = await within(start_ms, line);
    if (said === undefined) throw new Error(`${args.join(' ')} says nothing`);
    return said;
  };
  await nextLine();
  return { child, nextLine };
}

function script(name: string): string {
  return new URL(name, import.meta.url).pathname;
}

async function inside(namespace: string, ...args: readonly string[]): Promise<string> {
  return run('ip', '-n', namespace, ...args);
}

async function nft(namespace: string, ...args: readonly string[]): Promise<void> {
  await run('ip', 'netns', 'exec', namespace, program('nft'), ...args);
}

async function sysctl(namespace: string, ...settings: readonly string[]): Promise<void> {
  await run('ip', 'netns', 'exec', namespace, program('sysctl'), '-qw', ...settings);
}
