/** Vehicles behind TCP connections that a firewall drops in both directions, each for as long as a test asks. */
import { isDeepStrictEqual } from 'node:util';
import { sleep } from '../../../src/platform/time.ts';
import { assetId } from '../../../src/contract/identity.ts';
import { channels } from '../../../src/contract/topics.ts';
import { mavlink } from '../../../drivers/mavlink/mavlink.ts';
import { field } from '../../fakes/fake-drone.ts';
import { TcpDrone } from '../../fakes/tcp-drone.ts';
import { eventually } from '../../support/eventually.ts';
import { enterNamespace } from '../../support/gateway/enter-namespace.ts';
import { hubLab, kit_id } from '../../support/kit/hub-lab.ts';
import { run } from '../../support/temporary.ts';

const never = new AbortController().signal;

export interface Outage {
  readonly command: string;
  readonly payload?: Readonly<Record<string, unknown>>;
  readonly airborne: boolean;
  readonly outage_ms: number;
}

export interface OutageOutcome extends Outage {
  readonly error: string | undefined;
  /** When the task ended, after its dispatch. */
  readonly reported_ms: number;
  /** What reached the vehicle: its number (MAV_CMD) and the time after the dispatch, each copy of it. */
  readonly acted: readonly { readonly command: number; readonly at_ms: number }[];
  /** How long after the end of the outage the vehicle was online again. */
  readonly back_after_ms: number;
}

/** GET_HOME_POSITION and REQUEST_AUTOPILOT_CAPABILITIES: the connector asks a vehicle that is back by itself, and it acts on neither. */
const questions: ReadonlySet<number> = new Set([410, 520]);
const deadline_ms = 10_000;
/** Long enough for every retransmission of the kernel. */
const observe_ms = 4_000;

/** Dispatches each command while the connection of its vehicle is dropped; all at the same time. Needs root. */
export async function outages(list: readonly Outage[]): Promise<readonly OutageOutcome[]> {
  const name = `kc-outage-${process.pid}-${Math.floor(performance.now())}`;
  await run('ip', 'netns', 'add', name);
  await run('ip', '-n', name, 'link', 'set', 'lo', 'up');
  const nft = async (...words: readonly string[]): Promise<void> => {
    await run('ip', 'netns', 'exec', name, 'nft', ...words);
  };
  await nft('add table inet kit; add set inet kit lost { type inet_service; }');
  await nft('add chain inet kit in { type filter hook input priority 0; policy accept; }');
  await nft('add rule inet kit in tcp dport @lost drop; add rule inet kit in tcp sport @lost drop');
  const leave = enterNamespace(name);
  const drones = list.map(
    ({ airborne }, index) => new TcpDrone({ airborne, sysid: index + 1, uid: uidOf(index) }),
  );
  const lab = hubLab({ configured: ['drones'], rates: { default: 1_000_000 } });
  try {
    const ports = await Promise.all(drones.map(async (drone) => drone.listen()));
    for (const drone of drones) await drone.start();
    const links = ports.map((port) => ({ kind: 'tcp_client', host: '127.0.0.1', port }));
    void lab.run(mavlink, 'drones', { options: { links } });
    return await Promise.all(
      list.map(async (about, index) => {
        const [drone, port] = [drones[index], ports[index]];
        if (!drone || port === undefined) throw new Error('no such vehicle');
        return one(about, { lab, drone, port, nft, key: `mavlink:${uidOf(index)}` });
      }),
    );
  } finally {
    await lab.stop();
    for (const drone of drones) drone.stop();
    leave();
    await run('ip', 'netns', 'del', name);
  }
}

function uidOf(index: number): string {
  return (0xc0ff_ee00 + index).toString(16).padStart(16, '0');
}

interface Scene {
  readonly lab: ReturnType<typeof hubLab>;
  readonly drone: TcpDrone;
  readonly port: number;
  readonly nft: (...words: readonly string[]) => Promise<void>;
  readonly key: string;
}

async function one(about: Outage, { lab, drone, port, nft, key }: Scene): Promise<OutageOutcome> {
  const isOnline = (): boolean =>
    lab.hub.assets().some((asset) => asset.key === key && asset.status === 'online');
  const feed = (feed_name: string) => lab.outbox.on(channels.feed(assetId(kit_id, key), feed_name));
  await eventually('the vehicle is ready', () => {
    const has = (feed_name: string, fields: object): boolean =>
      feed(feed_name).some((data) => isDeepStrictEqual({ ...(data as object), ...fields }, data));
    const position = feed('gps').at(-1) as { readonly relative_alt_m?: unknown } | undefined;
    return (
      isOnline() &&
      typeof position?.relative_alt_m === 'number' &&
      has('sys_status', { pre_arm_check: true, ekf_ok: true })
    );
  });
  const acted: { readonly command: number; readonly at_ms: number }[] = [];
  await nft('add', 'element', 'inet', 'kit', 'lost', `{ ${port} }`);
  const begun_ms = performance.now();
  const after = (ms: number): number => Math.round(ms - begun_ms);
  drone.react = ({ command }, execute) => {
    if (!questions.has(command)) acted.push({ command, at_ms: after(performance.now()) });
    return execute();
  };
  const found = lab.hub.findCommand(assetId(kit_id, key), about.command);
  if ('refusal' in found) throw new Error(found.refusal);
  const stopping = new AbortController();
  const running = found.command
    .read(about.payload ?? {})
    .run({
      signal: stopping.signal,
      progress: () => undefined,
      remaining_ms: () => Math.max(0, deadline_ms - (performance.now() - begun_ms)),
    })
    .then(
      () => ({ error: undefined, at_ms: performance.now() }),
      (error: unknown) => ({
        error: error instanceof Error ? error.message : String(error),
        at_ms: performance.now(),
      }),
    );
  await sleep(about.outage_ms, never);
  await nft('delete', 'element', 'inet', 'kit', 'lost', `{ ${port} }`);
  const restored_ms = performance.now();
  const { error, at_ms } = await running;
  await eventually('the vehicle is online again', isOnline, 40_000);
  const back_after_ms = Math.max(0, performance.now() - restored_ms);
  await sleep(observe_ms, never);
  return { ...about, error, reported_ms: after(at_ms), acted, back_after_ms };
}

export function hasActedLate({ acted, reported_ms }: OutageOutcome): boolean {
  return acted.some(({ at_ms }) => at_ms > reported_ms);
}

export const near = { lat: field.lat + 0.001, lon: field.lon, alt_m: 30 };
