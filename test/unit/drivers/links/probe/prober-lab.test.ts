/** The prober on a gateway with two WANs: real sockets, real devices, real address translation. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type ProberSpec, startProber } from '../../../../../drivers/links/probe/prober.ts';
import { texts } from '../../../../../drivers/links/texts.ts';
import { deviceIndex } from '../../../../../src/platform/linux/bound-fd.ts';
import { eventually } from '../../../../support/eventually.ts';
import { sleep } from '../../../../../src/platform/time.ts';
import { peerMissing, program, rootMissing } from '../../../../support/peers.ts';
import { recordingLog } from '../../../../support/recording-log.ts';
import { run } from '../../../../support/temporary.ts';
import {
  lab_ports,
  lab_targets,
  lab_targets_v6,
  type LabWan,
  startWanLab,
  type WanLab,
} from '../../../../support/gateway/wan-lab.ts';
import { texts as platform_texts } from '../../../../../src/platform/texts.ts';

const interval_ms = 50;
const timeout_ms = 1_000;
/** What a busy machine may add. */
const slack_ms = 1_500;
/** Time between two looks at how late the event loop comes. */
const turn_ms = 10;
const targetsV6 = lab_targets_v6.map((ip) => ({ ip, port: lab_ports.tcp }));
const targets = lab_targets.map((ip) => ({ ip, port: lab_ports.tcp }));

describe.skipIf(rootMissing() || peerMissing('ip', 'nft', 'sysctl', 'setpriv'))('a prober in the lab', () => {
  let lab: WanLab;
  let leave: () => void = () => undefined;
  let stopping = new AbortController();
  const turns = monitorEventLoopDelay({ resolution: turn_ms });
  /** What the prober and the relay of the lab each had to wait for a processor, as this process had to. */
  const starved_ms = (): number => 2 * Math.max(0, turns.percentile(99) / 1e6 - turn_ms);

  beforeAll(async () => {
    lab = await startWanLab();
    leave = lab.enter();
  });
  afterAll(async () => {
    leave();
    await lab.stop();
  });
  beforeEach(async () => {
    stopping = new AbortController();
    turns.reset();
    turns.enable();
    await lab.set('sat0', {});
    await lab.set('wwan0', {});
  });
  afterEach(() => {
    turns.disable();
    stopping.abort();
  });

  const probe = async (device: LabWan, more: Partial<ProberSpec> = {}) => {
    const changes: (boolean | null)[] = [];
    const log = recordingLog();
    const prober = startProber({
      device,
      ifindex: (await deviceIndex(device)) ?? 0,
      targets: () => targets,
      interval_ms,
      timeout_ms,
      tcp: true,
      signal: stopping.signal,
      log,
      onChange: () => changes.push(prober.read().reachable),
      ...more,
    });
    return { ...prober, changes, log };
  };
  const reachable = async (prober: { read: () => { reachable: boolean | null } }, ms = 5_000) =>
    eventually('the link is reachable', () => prober.read().reachable === true, ms);

  it('finds 700 ms and 5 % loss on the satellite while the cellular link has its own figures', async () => {
    await lab.set('sat0', { rtt_ms: 700, loss_pct: 5 });
    await lab.set('wwan0', { rtt_ms: 80, jitter_ms: 10 });
    // The first answer takes two round trips, since the neighbour must be found first.
    const quick = { interval_ms: 20, timeout_ms: 2_500 };
    const satellite = await probe('sat0', quick);
    const cellular = await probe('wwan0', quick);
    await reachable(satellite);
    await eventually('a window is full', () => satellite.read().packet_loss_pct !== null);
    // Where the search for the neighbour was lost, the first answers took longer still, and the mean forgets them slowly.
    await eventually(
      'the first answers are forgotten',
      () => (satellite.read().latency_ms ?? 0) < 770,
      15_000,
    );
    const losses: number[] = [];
    for (let count = 0; count < 95; count += 1) {
      await sleep(100, new AbortController().signal);
      // The window is full then.
      if (count < 15) continue;
      const [far, near] = [satellite.read(), cellular.read()];
      losses.push(far.packet_loss_pct ?? Number.NaN);
      expect(far.latency_ms).toBeGreaterThan(630);
      expect(far.latency_ms).toBeLessThan(770 + starved_ms());
      expect(near.latency_ms).toBeGreaterThan(72);
      expect(near.latency_ms).toBeLessThan(88 + starved_ms());
      expect(near.packet_loss_pct).toBe(0);
    }
    const loss_pct = losses.reduce((sum, loss) => sum + loss, 0) / losses.length;
    expect(loss_pct).toBeGreaterThan(4.5);
    expect(loss_pct).toBeLessThan(5.5);
    // Two even variations of 10 ms each way differ by a third of their range, a little less where frames may not overtake.
    expect(cellular.read().jitter_ms).toBeGreaterThan(3);
    expect(cellular.read().jitter_ms).toBeLessThan(10 + starved_ms());
    expect([satellite.changes, cellular.changes]).toEqual([[true], [true]]);
  });

  it('reports a removed device immediately, and nothing for a new device of its name', async () => {
    const prober = await probe('wwan0');
    await reachable(prober);
    await lab.unplug('wwan0');
    await eventually('it is gone', () => prober.read().reason === texts.device_gone, slack_ms);
    expect(prober.read().reachable).toBe(false);
    await lab.plug('wwan0');
    const replaced = texts.device_replaced;
    await eventually('it is replaced', () => prober.read().reason === replaced, slack_ms);
    const successor = await probe('wwan0');
    await reachable(successor);
    expect(prober.read()).toMatchObject({ reachable: null, method: 'none', latency_ms: null });
  });

  it('reports immediately when the kernel cannot send by the device, and why', async () => {
    const prober = await probe('wwan0', { targets: () => targetsV6 });
    await reachable(prober);
    await lab.ip('-6', 'addr', 'flush', 'dev', 'wwan0', 'scope', 'global');
    await lab.ip('-6', 'route', 'flush', 'dev', 'wwan0');
    // Sooner than a timeout, since nothing has to be waited for.
    await eventually(
      'it is lost',
      () => prober.read().reason === platform_texts.socket_reasons['ENETUNREACH'],
      slack_ms,
    );
    expect(prober.read().reachable).toBe(false);
    await lab.unplug('wwan0');
    await lab.plug('wwan0');
  });

  it('probes by TCP while ICMP is filtered, without reporting a loss, and by ICMP again afterwards', async () => {
    await lab.set('sat0', { rtt_ms: 50 });
    const prober = await probe('sat0', { timeout_ms: 500 });
    await reachable(prober);
    await lab.filterIcmp('sat0', 'on');
    await eventually('TCP is used', () => prober.read().method === 'tcp');
    await eventually('TCP has figures', () => prober.read().packet_loss_pct === 0);
    expect(prober.read().latency_ms).toBeGreaterThan(45);
    expect(prober.read().latency_ms).toBeLessThan(60 + starved_ms());
    await lab.filterIcmp('sat0', 'off');
    await eventually('ICMP is used', () => prober.read().method === 'icmp');
    expect(prober.changes).toEqual([true]);
    expect(prober.log.at('info')).toEqual([texts.icmp_unanswered, texts.icmp_answered]);
  });

  it('reports what is lost while TCP stands in, although the kernel repeats it', async () => {
    await lab.filterIcmp('sat0', 'on');
    try {
      await lab.set('sat0', { loss_pct: 25 });
      const prober = await probe('sat0', { interval_ms: 20, timeout_ms: 2_500 });
      await reachable(prober, 15_000);
      await eventually('a window is full', () => (prober.read().packet_loss_pct ?? 0) > 8);
      expect(prober.read()).toMatchObject({ method: 'tcp', note: texts.tcp_stands_in });
    } finally {
      await lab.filterIcmp('sat0', 'off');
    }
  });

  it('excludes a target that never answers from the loss and names it', async () => {
    const silent = '198.18.0.9';
    const prober = await probe('sat0', {
      targets: () => [...targets, { ip: silent, port: 443 }],
      interval_ms: 10,
      timeout_ms: 200,
    });
    const named = () => prober.log.lines.find(({ facts }) => 'targets' in facts);
    await eventually('it is named', () => named() !== undefined);
    expect(named()?.facts).toEqual({ link: 'sat0', targets: [silent] });
    await eventually('nothing is lost', () => prober.read().packet_loss_pct === 0);
    expect(prober.read().reachable).toBe(true);
  });

  it('probes targets of IPv6', async () => {
    await lab.set('wwan0', { rtt_ms: 30 });
    const prober = await probe('wwan0', { targets: () => targetsV6 });
    await reachable(prober);
    await eventually('there are figures', () => prober.read().packet_loss_pct === 0);
    expect(prober.read().latency_ms).toBeGreaterThan(27);
    expect(prober.read().latency_ms).toBeLessThan(36 + starved_ms());
  });

  const reading = z.looseObject({
    method: z.string(),
    latency_ms: z.number().nullable(),
    warnings: z.array(z.looseObject({ facts: z.looseObject({ reason: z.string().nullish() }) })),
  });
  const asUser = async (user: 'nobody' | 'root') => {
    const id = user === 'nobody' ? '65534' : '0';
    const rights = ['--reuid', id, '--regid', id, '--clear-groups', '--no-new-privs'];
    const node = [
      process.execPath,
      new URL('../../../../support/gateway/probe-process.ts', import.meta.url).pathname,
    ];
    const [ip = '', ...prefix] = lab.gateway.prefix;
    const command = [program('setpriv'), ...rights, ...node, 'wwan0', lab_targets[0]];
    return reading.parse(JSON.parse(await run(ip.split('/').at(-1) ?? '', ...prefix, ...command)));
  };
  const pingGroups = async (range: string) => run('sysctl', '-qw', `net.ipv4.ping_group_range=${range}`);

  it('needs no capability where the group of the process may ping', async () => {
    await expect(asUser('nobody')).resolves.toMatchObject({ method: 'icmp', warnings: [] });
  });

  it('falls back to raw sockets with CAP_NET_RAW, else to TCP with the missing permission', async () => {
    await pingGroups('1 0');
    try {
      await expect(asUser('root')).resolves.toMatchObject({ method: 'icmp', warnings: [] });
      const { method, latency_ms, warnings } = await asUser('nobody');
      expect([method, typeof latency_ms]).toEqual(['tcp', 'number']);
      expect(warnings[0]?.facts.reason).toMatch(/ping_group_range.*CAP_NET_RAW/u);
    } finally {
      await pingGroups('0 2147483647');
    }
  });
});
