/** SNMP against Debian's own agent: v2c, v3, the standard MIBs, and airOS's OIDs served by its `pass`. */
import { spawn } from 'node:child_process';
import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { vendorradioWith } from '../../../../drivers/vendorradio/vendorradio.ts';
import { openSnmp } from '../../../../drivers/vendorradio/snmp/snmp-session.ts';
import { texts } from '../../../../drivers/vendorradio/texts.ts';
import { eventually } from '../../../support/eventually.ts';
import { hubLab } from '../../../support/kit/hub-lab.ts';
import { dyingWithUs, peerMissing, program } from '../../../support/peers.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import { quick_limits } from '../../../support/drivers/vendorradio-lab.ts';
import { freePort } from '../../../support/ports.ts';

/** What `snmpd` answers below these roots in place of its own, in the order of the OIDs (snmpd.conf(5), pass). */
interface Walk {
  readonly roots: readonly string[];
  /** OID, type and value; the value `grows` is a counter of a megabyte in each second. */
  readonly rows: readonly string[];
}

const walkScript = ({ rows }: Walk): string => `#!/bin/sh
rows="${rows.join('\n')}"
found=
echo "$rows" | while read -r oid type value; do
  oid=.$oid
  if [ "$1" = -n ] && [ -z "$found" ]; then
    [ "$2" = "$oid" ] && { found=1; continue; }
    case "$oid" in "$2".*) found=1 ;; esac
  fi
  [ "$1" = -g ] && { [ "$2" = "$oid" ] && found=1 || continue; }
  [ -z "$found" ] && continue
  [ "$value" = grows ] && value=$(($(date +%s%N) / 1000 % 4294967296))
  printf '%s\\n%s\\n%s\\n' "$oid" "$type" "$value"
  break
done
`;

const below = (base: string, ...rows: readonly string[]): readonly string[] =>
  rows.map((row) => `${base}.${row}`);

/** Its agent has no other tables of interfaces; HC counters are missing. */
const interfaces = '1.3.6.1.2.1.2.2';
const high_counters = '1.3.6.1.2.1.31';

/** The maker's MIB. */
const airos: Walk = {
  roots: ['1.3.6.1.4.1.41112.1.4'],
  rows: below(
    '1.3.6.1.4.1.41112.1.4',
    '1.1.4.1 integer 5800',
    '5.1.5.1 integer -61',
    '5.1.7.1 integer 91',
    '5.1.8.1 integer -96',
    '5.1.9.1 integer 300000000',
    '5.1.10.1 integer 270000000',
    '5.1.14.1 integer 40',
    '7.1.1.1 string 02:00:00:aa:bb:02',
    '7.1.3.1 integer -62',
    '7.1.4.1 integer -95',
    '7.1.11.1 integer 130000000',
    '7.1.12.1 integer 117000000',
  ),
};

/** Of librenms/librenms, tests/snmpsim/airos_airos8.snmprec, as far as it is read; addresses are ours. */
const litebeam: Walk = {
  roots: [interfaces, high_counters, '1.3.6.1.4.1.41112'],
  rows: [
    ...below(
      `${interfaces}.1`,
      '2.2 string eth0',
      '2.6 string wifi0',
      '2.7 string ath0',
      '2.8 string br0',
      '3.2 integer 6',
      '3.6 integer 1',
      '3.7 integer 6',
      '3.8 integer 6',
      '6.2 string 02:00:00:c9:66:b2',
      '6.7 string 02:00:00:c8:66:b2',
      '6.8 string 02:00:00:c8:66:b2',
      '10.2 counter 2055946673',
      '10.7 counter grows',
      '16.2 counter 3352696952',
      '16.7 counter 707218017',
    ),
    ...below(
      '1.3.6.1.4.1.41112.1.4',
      '1.1.4.1 integer 5780',
      '5.1.5.1 integer -70',
      '5.1.7.1 integer 33',
      '5.1.8.1 integer -91',
      '5.1.9.1 integer 39000000',
      '5.1.10.1 integer 52000000',
    ),
  ],
};

/** Of librenms/librenms, tests/snmpsim/airos-af.snmprec (version 4.0.3): interfaces that count the management alone. */
const airfiber: Walk = {
  roots: [interfaces, high_counters, '1.3.6.1.4.1.41112'],
  rows: [
    ...below(
      `${interfaces}.1`,
      '2.3 string eth0',
      '2.4 string air0',
      '3.3 integer 6',
      '3.4 integer 6',
      '6.3 string 02:00:00:af:56:43',
      '6.4 string 02:00:00:af:56:44',
      '10.3 counter 0',
      '10.4 counter grows',
      '16.3 counter 0',
      '16.4 counter grows',
    ),
    ...below(
      '1.3.6.1.4.1.41112.1.3.2.1',
      '5.1 integer 686400640',
      '6.1 integer 684856960',
      '8.1 integer 22',
      '11.1 integer -42',
    ),
  ],
};

/** Of OpenWrt, whose agent keeps the rows of interfaces that are gone (openwrt/packages#2397). */
const openwrt = (...made: readonly (readonly [index: number, octets: string])[]): Walk => {
  const row = (column: number, type: string, read: (octets: string) => string) =>
    made.map(([index, octets]) => `${column}.${index} ${type} ${read(octets)}`);
  return {
    roots: [interfaces, high_counters],
    rows: below(
      `${interfaces}.1`,
      ...row(2, 'string', () => 'wlan0'),
      ...row(3, 'integer', () => '6'),
      ...row(6, 'string', () => '02:00:00:c8:66:b2'),
      ...row(10, 'counter', (octets) => octets),
      ...row(16, 'counter', (octets) => octets),
    ),
  };
};

/** The maker's MIB (librenms/librenms#6892); the address is the index of the row, and readable in no column. */
const mikrotik: Walk = {
  roots: ['1.3.6.1.4.1.14988'],
  rows: below(
    '1.3.6.1.4.1.14988.1.1.1.2.1',
    '3.2.0.0.170.187.2.5 integer -67',
    '8.2.0.0.170.187.2.5 gauge 130000000',
    '9.2.0.0.170.187.2.5 gauge 117000000',
  ),
};

/** Whether a UDP socket of the loopback has this port. */
function isBound(port: number): boolean {
  const address = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')} `;
  return readFileSync('/proc/net/udp', 'utf8').includes(address);
}

const engine_name = 'the-bridge';

/** Between an agent and its client: what the agent answers without authentication has other boots. Returns its port. */
async function otherBoots(port: number): Promise<number> {
  const socket = createSocket('udp4');
  const unauthenticated = Buffer.from([4, 0, 4, 0, 4, 0]);
  let client: RemoteInfo | undefined;
  socket.on('message', (bytes, from) => {
    if (from.port !== port) {
      client = from;
      socket.send(bytes, port, '127.0.0.1');
      return;
    }
    const boots_at = bytes.indexOf(engine_name) + engine_name.length + 2;
    if (bytes.includes(unauthenticated)) bytes.writeUInt8(9, boots_at);
    socket.send(bytes, client?.port ?? 0, '127.0.0.1');
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  stops.push(async () => socket.close());
  return socket.address().port;
}

interface Restarting {
  readonly lines: readonly string[];
  readonly later_ms: number;
  /** What is between it and its client; returns its port. */
  readonly first?: (port: number) => Promise<number>;
}

interface Wrong {
  readonly username?: string;
  readonly auth?: string;
  readonly priv?: string | undefined;
}

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const stop of stops.splice(0).toReversed()) await stop();
});

interface AgentOptions {
  readonly walk?: Walk;
  /** Only this version may read, as with airMAX and airFiber. */
  readonly only?: 'v1' | 'v2c';
  /** What it may read then; all when left out. */
  readonly views?: readonly string[];
  /** Further lines of snmpd.conf(5). */
  readonly lines?: readonly string[];
}

/** VACM of snmpd.conf(5) for one version of a community, and what it may read with it. */
const readersOnly = (version: string, views: readonly string[] = ['.1']): readonly string[] => [
  'com2sec reader 127.0.0.1 readers',
  `group readers ${version} reader`,
  ...views.map((view) => `view some included ${view}`),
  `access readers "" ${version} noauth exact some none none`,
];

async function agent({ walk, only, views, lines = [] }: AgentOptions = {}) {
  const dir = await makeDirectory();
  const port = await freePort();
  const script = join(dir, 'walk');
  await writeFile(script, walkScript(walk ?? { roots: [], rows: [] }));
  // Not snmpd.conf: the agent keeps a file of that name in its own folder, and would replace ours.
  const conf = join(dir, 'agent.conf');
  const users = ['createUser watcher SHA authentication1 AES encryption1', 'rouser watcher priv'];
  const settings = [
    `agentAddress udp:127.0.0.1:${port}`,
    ...(only ? readersOnly(only, views) : ['rocommunity readers 127.0.0.1']),
    'sysName bridge',
    ...lines,
    ...(walk?.roots ?? []).map((root) => `pass -p 10 .${root} /bin/sh ${script}`),
  ];
  await writeFile(conf, [...settings, ...users].join('\n'));
  const [command, ...args] = [
    ...dyingWithUs(),
    program('snmpd'),
    '-f',
    '-Lo',
    '-C',
    '-c',
    conf,
    '-I',
    '-smux',
  ];
  const start = () => {
    const child = spawn(command ?? 'snmpd', args, {
      stdio: 'ignore',
      env: { ...process.env, SNMP_PERSISTENT_DIR: dir },
    });
    const stop = async (): Promise<void> => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'close');
    };
    stops.push(stop);
    return stop;
  };
  let stop = start();
  // A request before that is lost, and with the limits of airOS repeated a quarter of a minute later.
  await eventually('the agent listens', () => isBound(port));
  const secret = async (name: string, text: string): Promise<string> => {
    await writeFile(join(dir, name), text, { mode: 0o600 });
    return join(dir, name);
  };
  // A shell for each value: on a busy machine an answer takes seconds, and each repeated request makes the next one later.
  const limits = walk ? { ...quick_limits, snmp_timeout_ms: 14_000, snmp_answer_ms: 60_000 } : quick_limits;
  const lab = hubLab({ configured: ['radios'], state_dir: join(dir, 'state'), rates: { default: 1_000 } });
  stops.push(async () => lab.stop());
  return {
    stop: async () => stop(),
    start: () => {
      stop = start();
    },
    port,
    secret,
    lab,
    other_dir: join(dir, 'other'),
    show: async (other: Walk) => writeFile(script, walkScript(other)),
    run: (radio: object, kit = lab) =>
      void kit.run(vendorradioWith(limits), 'radios', {
        options: {
          radios: [
            {
              kind: 'snmp',
              name: 'bridge',
              host: '127.0.0.1',
              port,
              identity: '02:00:00:aa:bb:10',
              device: 'lo',
              ...radio,
            },
          ],
          snmp_poll_s: 0.2,
        },
      }),
    v2c: async () => ({ version: '2c', community_file: await secret('community', 'readers') }),
    v1: async () => ({ version: 1, community_file: await secret('community', 'readers') }),
    v3: async () => ({
      username: 'watcher',
      auth_password_file: await secret('auth', 'authentication1'),
      priv_password_file: await secret('priv', 'encryption1'),
    }),
    /** Of version 3. */
    session: (at = port) => {
      const auth = { protocol: 'sha', key: 'authentication1' } as const;
      const priv = { protocol: 'aes', key: 'encryption1' } as const;
      const login = { version: '3', username: 'watcher', auth, priv } as const;
      const opened = openSnmp('127.0.0.1', at, login, { limits });
      stops.push(async () => opened.close());
      return opened;
    },
    /** Off and on again. It keeps nothing: it counts no boots, and has another engine ID where none is configured. */
    restart: async ({ hasUsers = true } = {}) => {
      await stop();
      if (!hasUsers) await writeFile(conf, settings.join('\n'));
      stop = start();
      await eventually('the agent listens again', () => isBound(port));
    },
    said: (text: string) => JSON.stringify(lab.log.lines).includes(text),
    feed: (name: string) =>
      lab.outbox.drafts.filter(({ channel }) => channel.endsWith(`/${name}`)).map(({ data }) => data),
    status: () => lab.hub.assets()[0]?.status,
  };
}

describe.skipIf(peerMissing('snmpd'))('a radio over SNMP', () => {
  it('v2c: reports its status and throughput, has no commands, is lost and comes back', async () => {
    const peer = await agent();
    peer.run(await peer.v2c());
    await eventually('it is online', () => peer.status() === 'online');
    await eventually('its throughput is known', () =>
      peer.feed('link').some((link) => typeof link?.['rx_bps'] === 'number'),
    );
    expect(peer.feed('status').at(0)).toMatchObject({
      hostname: 'bridge',
      source: 'snmp',
      uptime_s: expect.any(Number) as number,
    });
    expect(peer.feed('radio').at(-1)).toMatchObject({ rssi: null, noise: null, peer: null });
    expect(peer.feed('link').at(-1)).toMatchObject({ freq_mhz: null, peers: null });
    expect(
      peer.lab.outbox.drafts.findLast(({ channel }) => channel.endsWith('/commands'))?.data,
    ).toMatchObject({ commands: [] });
    await peer.stop();
    await eventually('it is lost', () => peer.status() === 'offline');
    peer.start();
    await eventually('it is back', () => peer.status() === 'online');
  });

  it.each([
    ['2c', 'version 3'],
    [1, '2c'],
  ])('v%s: is named with the other versions where the agent does not answer it', async (version, other) => {
    const peer = await agent();
    peer.run({ version, community_file: await peer.secret('community', 'strangers') });
    const text = texts.snmp_silent_community(version === 1 ? '1' : '2c');
    await eventually('it is said', () => peer.said(text));
    expect(text).toContain(other);
  });

  // prometheus/snmp_exporter#313, librenms/librenms#4918, #15077.
  it('v1: serves an agent that has no other version, with counters of 32 bits', async () => {
    const peer = await agent({ only: 'v1' });
    peer.run(await peer.v1());
    await eventually('it is online', () => peer.status() === 'online');
    await eventually('its throughput is known', () =>
      peer.feed('link').some((link) => typeof link?.['rx_bps'] === 'number'),
    );
    expect(peer.feed('status').at(0)).toMatchObject({
      hostname: 'bridge',
      uptime_s: expect.any(Number) as number,
    });
    const warned = peer.lab.log.lines.filter((line) => JSON.stringify(line).includes(texts.snmp_clear));
    expect(warned).toHaveLength(1);
  });

  it('v1: costs only what it does not have, though it refuses the whole request (AthenaNetworks/mymate#25)', async () => {
    const peer = await agent({ only: 'v1' });
    const nowhere = '1.3.6.1.4.1.99999.1.0';
    // hrMemorySize, which every snmpd has.
    peer.run({
      ...(await peer.v1()),
      oids: { voltage: '1.3.6.1.2.1.25.2.2.0', rssi: nowhere, noise: nowhere },
    });
    await eventually('it is online', () => peer.status() === 'online');
    expect(peer.feed('status').at(0)).toMatchObject({ voltage: expect.any(Number) as number });
    expect(peer.feed('radio').at(-1)).toMatchObject({ rssi: null, noise: null });
  });

  const system_view = '.1.3.6.1.2.1.1';
  it.each(['v1', 'v2c'] as const)('%s: costs only what its community may not read', async (version) => {
    const peer = await agent({ only: version, views: [system_view, '.1.3.6.1.2.1.2'] });
    peer.run(await peer[version]());
    await eventually('its throughput is known', () =>
      peer.feed('link').some((link) => typeof link?.['rx_bps'] === 'number'),
    );
    expect(peer.feed('status').at(0)).toMatchObject({ hostname: 'bridge', uptime_s: null });
  });

  it.each([
    ['its interfaces', [system_view], texts.snmp_no_interfaces],
    ['anything', ['.1.3.6.1.2.1.4'], texts.snmp_nothing_readable],
  ])('is named where its community may not read %s', async (_what, views, sentence) => {
    const peer = await agent({ only: 'v2c', views });
    peer.run(await peer.v2c());
    await eventually('it is said', () => peer.said(sentence));
  });

  it('v2c: with an agent that has version 1 only, another version is the advice', async () => {
    const peer = await agent({ only: 'v1' });
    peer.run(await peer.v2c());
    await eventually(
      'it is said',
      () => peer.said(texts.snmp_silent_community('2c')) || peer.said(texts.snmp_nothing_readable),
    );
  });

  it('v3: authenticates and encrypts', async () => {
    const peer = await agent();
    peer.run({
      username: 'watcher',
      auth_password_file: await peer.secret('auth', 'authentication1'),
      priv_password_file: await peer.secret('priv', 'encryption1'),
    });
    await eventually('it is online', () => peer.status() === 'online');
  });

  const sys_name = '1.3.6.1.2.1.1.5.0';
  const own_id = [`engineID ${engine_name}`];
  const minutes_ms = 200_000;

  it.each([
    ['restarted', { lines: own_id, later_ms: 0 }],
    // As the agent of Debian 12 does (net-snmp/net-snmp#853, #385).
    ['restarted after minutes, and counts no boots', { lines: own_id, later_ms: minutes_ms }],
    ['has another engine ID after its restart', { lines: [], later_ms: 0 }],
    ['has another engine ID after minutes', { lines: [], later_ms: minutes_ms }],
    [
      'reports other boots at first than it has (net-snmp/net-snmp#510)',
      { lines: own_id, later_ms: minutes_ms, first: otherBoots },
    ],
  ])('v3: goes on with an agent that %s', async (_what, { lines, later_ms, first }: Restarting) => {
    const peer = await agent({ lines });
    const session = peer.session(await first?.(peer.port));
    expect((await session.get([sys_name])).size).toBe(1);
    const now = performance.now.bind(performance);
    vi.spyOn(performance, 'now').mockImplementation(() => now() + later_ms);
    await peer.restart();
    expect((await session.get([sys_name])).size).toBe(1);
  });

  it.each([
    ['a wrong user', { username: 'stranger' }, texts.snmp_user_unknown],
    ['a wrong password', { auth: 'not-the-password' }, texts.snmp_auth_wrong],
    ['no encryption, which the user needs', { priv: undefined }, texts.snmp_nothing_readable],
    ['a wrong password of encryption', { priv: 'not-the-password' }, texts.snmp_silent_encrypted],
  ])('v3: names what is wrong with %s', async (_what, { username, auth, ...priv }: Wrong, sentence) => {
    const peer = await agent();
    const right = await peer.v3();
    const other =
      'priv' in priv && (priv.priv === undefined ? undefined : await peer.secret('other', priv.priv));
    peer.run({
      ...right,
      ...(username === undefined ? {} : { username }),
      ...(auth === undefined ? {} : { auth_password_file: await peer.secret('auth', auth) }),
      ...(other === false ? {} : { priv_password_file: other }),
    });
    await eventually('it is said', () => peer.said(sentence), 20_000);
  });

  it('v3: takes the refusal of a user that it served for one that may pass: an agent that starts may not know its users yet', async () => {
    const peer = await agent();
    peer.run(await peer.v3());
    await eventually('it is online', () => peer.status() === 'online');
    await peer.restart({ hasUsers: false });
    await eventually('it is refused', () => peer.said(texts.snmp_user_unknown), 20_000);
    expect(peer.said('"may_pass":true')).toBe(true);
  });

  it('v3: answers two kits at once, each with separate counters', async () => {
    const peer = await agent();
    const login = {
      username: 'watcher',
      auth_password_file: await peer.secret('auth', 'authentication1'),
      priv_password_file: await peer.secret('priv', 'encryption1'),
    };
    const other = hubLab({ configured: ['radios'], state_dir: peer.other_dir, rates: { default: 1_000 } });
    stops.push(async () => other.stop());
    peer.run(login);
    peer.run(login, other);
    const rates = ({ outbox }: typeof other) =>
      outbox.drafts.filter(
        ({ channel, data }) => channel.endsWith('/link') && typeof data?.['rx_bps'] === 'number',
      );
    await eventually('both have read it often', () =>
      [peer.lab, other].every((kit) => rates(kit).length >= 5),
    );
    for (const { outbox, log } of [peer.lab, other]) {
      const states = outbox.drafts.filter(({ channel }) => channel.endsWith('/asset_status'));
      expect(states.map(({ data }) => data?.['status'])).toEqual(['online']);
      expect(log.at('warn')).toEqual([]);
    }
  });

  it('v3: with a wrong password it is refused, and not asked again', async () => {
    const peer = await agent();
    peer.run({
      username: 'watcher',
      auth_password_file: await peer.secret('auth', 'not-the-password'),
      priv_password_file: await peer.secret('priv', 'encryption1'),
    });
    await eventually(
      'it is said',
      () => JSON.stringify(peer.lab.log.lines).includes('refuses the SNMP user'),
      20_000,
    );
    expect(peer.lab.hub.assets()).toEqual([]);
  });

  it.each(['v1', 'v2c'] as const)(
    '%s: of airOS reports its signal and its stations by the OIDs of the preset',
    async (version) => {
      const peer = await agent({ walk: airos });
      peer.run(await peer[version]());
      await eventually('it is online', () => peer.status() === 'online');
      expect(peer.feed('link').at(-1)).toMatchObject({
        freq_mhz: 5800,
        bandwidth_mhz: 40,
        quality_pct: 91,
        noise: -96,
        peers: 1,
      });
      expect(peer.feed('radio').at(-1)).toMatchObject({ rssi: -62, noise: -95, peer: '02:00:00:aa:bb:02' });
    },
  );

  it.each(['v1', 'v2c'] as const)(
    '%s: of airOS counts what goes over the air, not its Ethernet port, and keeps its identity',
    async (version) => {
      const peer = await agent({ walk: litebeam });
      peer.run({ ...(await peer[version]()), device: undefined, identity: undefined });
      await eventually('it is online', () => peer.status() === 'online');
      await eventually('it is counted', () =>
        peer.feed('link').some((link) => Number(link?.['rx_bps']) > 0 && link?.['tx_bps'] === 0),
      );
      expect(peer.feed('link').at(-1)).toMatchObject({ freq_mhz: 5780, noise: -91, quality_pct: 33 });
      expect(peer.lab.outbox.drafts.map(({ data }) => data?.['asset_key'])).toContain('radio:020000c966b2');
    },
  );

  it('of OpenWrt counts the interface that there is, not the one of that name that is gone', async () => {
    const peer = await agent({ walk: openwrt([23, '900']) });
    peer.run({ ...(await peer.v2c()), device: 'wlan0' });
    await eventually('it stands', () => peer.feed('link').at(-1)?.['rx_bps'] === 0);
    await peer.show(openwrt([23, '900'], [25, 'grows']));
    const rates = () => peer.feed('link').map((link) => Number(link?.['rx_bps']));
    await eventually('it is counted again', () => (rates().at(-1) ?? 0) > 0);
    expect(Math.max(...rates())).toBeLessThan(100_000_000);
  });

  it('of airFiber reports signal and capacity, and no throughput, since it counts its management alone', async () => {
    const peer = await agent({ walk: airfiber });
    peer.run({ ...(await peer.v1()), device: undefined, identity: undefined });
    await eventually('it was read often', () => peer.feed('link').length > 2);
    expect(peer.feed('radio').at(-1)).toMatchObject({ rssi: -42 });
    expect(peer.feed('link').at(-1)).toMatchObject({ tx_rate_bps: 684_856_960, rx_rate_bps: 686_400_640 });
    expect(peer.feed('link').every((link) => link?.['tx_bps'] === null && link['rx_bps'] === null)).toBe(
      true,
    );
  });

  it('of RouterOS reports its stations, whose addresses are in the index', async () => {
    const peer = await agent({ walk: mikrotik });
    peer.run({ ...(await peer.v2c()), preset: 'mikrotik' });
    await eventually('it is online', () => peer.status() === 'online');
    expect(peer.feed('radio').at(-1)).toMatchObject({ rssi: -67, peer: '02:00:00:aa:bb:02' });
    expect(peer.feed('link').at(-1)).toMatchObject({ tx_rate_bps: 130_000_000, peers: 1 });
  });

  it('takes OIDs of the configuration before those of the preset, with their scale', async () => {
    const peer = await agent({ walk: airos });
    peer.run({
      ...(await peer.v2c()),
      preset: 'generic',
      oids: { voltage: { oid: '1.3.6.1.4.1.41112.1.4.1.1.4.1', scale: 0.01 } },
    });
    await eventually('it is online', () => peer.status() === 'online');
    expect(peer.feed('status').at(0)).toMatchObject({ voltage: 58 });
  });

  it('names the interfaces there are when the one of the configuration is missing', async () => {
    const peer = await agent();
    peer.run({ ...(await peer.v2c()), device: 'wlan9' });
    const [name] = Object.keys(networkInterfaces());
    await eventually(
      'it is said',
      () =>
        JSON.stringify(peer.lab.log.lines).includes('has no interface wlan9; its interfaces are') &&
        JSON.stringify(peer.lab.log.lines).includes(name ?? 'lo'),
      20_000,
    );
  });
});
