/** SNMP against Debian's own agent: v2c, v3, the standard MIBs, and airOS's OIDs served by its `pass`. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { vendorradioWith } from '../../../../drivers/vendorradio/vendorradio.ts';
import { texts } from '../../../../drivers/vendorradio/texts.ts';
import { eventually } from '../../../support/eventually.ts';
import { hubLab } from '../../../support/kit/hub-lab.ts';
import { dyingWithUs, peerMissing, program } from '../../../support/peers.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import { quick_limits } from '../../../support/drivers/vendorradio-lab.ts';
import { freePort } from '../../../support/ports.ts';

/** Serves numbers below one OID, one after another, to `snmpd` (snmpd.conf(5), pass). */
const airos = `#!/bin/sh
base=.1.3.6.1.4.1.41112.1.4
rows="1.1.4.1 integer 5800
5.1.5.1 integer -61
5.1.7.1 integer 91
5.1.8.1 integer -96
5.1.9.1 integer 300000000
5.1.10.1 integer 270000000
5.1.14.1 integer 40
7.1.1.1 octet 020000aabb02
7.1.3.1 integer -62
7.1.4.1 integer -95
7.1.11.1 integer 130000000
7.1.12.1 integer 117000000"
found=
echo "$rows" | while read -r oid type value; do
  if [ "$1" = -n ] && [ -z "$found" ]; then
    [ "$2" = "$base" ] && found=1
    [ "$2" = "$base.$oid" ] && { found=1; continue; }
    case "$base.$oid" in "$2".*) found=1 ;; esac
  fi
  [ "$1" = -g ] && { [ "$2" = "$base.$oid" ] && found=1 || continue; }
  [ -z "$found" ] && continue
  [ "$type" = octet ] && { type=string; value=02:00:00:aa:bb:02; }
  printf '%s\\n%s\\n%s\\n' "$base.$oid" "$type" "$value"
  break
done
`;

/** Whether a UDP socket of the loopback has this port. */
function isBound(port: number): boolean {
  const address = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')} `;
  return readFileSync('/proc/net/udp', 'utf8').includes(address);
}

const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop();
});

async function agent({ isAiros = false } = {}) {
  const dir = await makeDirectory();
  const port = await freePort();
  const script = join(dir, 'airos');
  await writeFile(script, airos);
  await chmod(script, 0o755);
  // Not snmpd.conf: the agent keeps a file of that name in its own folder, and would replace ours.
  const conf = join(dir, 'agent.conf');
  await writeFile(
    conf,
    [
      `agentAddress udp:127.0.0.1:${port}`,
      'rocommunity readers 127.0.0.1',
      'sysName bridge',
      'createUser watcher SHA authentication1 AES encryption1',
      'rouser watcher priv',
      ...(isAiros ? [`pass .1.3.6.1.4.1.41112.1.4 /bin/sh ${script}`] : []),
    ].join('\n'),
  );
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
  const stop = start();
  // A request before that is lost, and with the limits of airOS repeated a quarter of a minute later.
  await eventually('the agent listens', () => isBound(port));
  const secret = async (name: string, text: string): Promise<string> => {
    await writeFile(join(dir, name), text, { mode: 0o600 });
    return join(dir, name);
  };
  // A shell for each value: on a busy machine an answer takes seconds, and each repeated request makes the next one later.
  const limits = isAiros
    ? { ...quick_limits, snmp_timeout_ms: 14_000, snmp_answer_ms: 60_000 }
    : quick_limits;
  const lab = hubLab({ configured: ['radios'], state_dir: join(dir, 'state'), rates: { default: 1_000 } });
  stops.push(async () => lab.stop());
  return {
    stop,
    start,
    secret,
    lab,
    other_dir: join(dir, 'other'),
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

  it('v2c: is named with both remedies where the agent does not answer it, because it accepts v3 only', async () => {
    const peer = await agent();
    peer.run({ version: '2c', community_file: await peer.secret('community', 'strangers') });
    await eventually('it is said', () =>
      JSON.stringify(peer.lab.log.lines).includes(texts.snmp_silent_community),
    );
    expect(texts.snmp_silent_community).toContain('version 3');
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

  it('of airOS reports its signal and its stations by the OIDs of the preset', async () => {
    const peer = await agent({ isAiros: true });
    peer.run(await peer.v2c());
    await eventually('it is online', () => peer.status() === 'online');
    expect(peer.feed('link').at(-1)).toMatchObject({
      freq_mhz: 5800,
      bandwidth_mhz: 40,
      quality_pct: 91,
      noise: -96,
      peers: 1,
    });
    expect(peer.feed('radio').at(-1)).toMatchObject({ rssi: -62, noise: -95, peer: '02:00:00:aa:bb:02' });
  });

  it('takes OIDs of the configuration before those of the preset, with their scale', async () => {
    const peer = await agent({ isAiros: true });
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
