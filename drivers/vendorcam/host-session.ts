/** The session with one host: connect, log in, describe, poll, and clean up at the end. */
import { certificateCheck } from '../../src/toolkit/device/certificate-check.ts';
import { DeviceName } from '../../src/toolkit/device/device-name.ts';
import { serveDevice } from '../../src/toolkit/device/device-session.ts';
import { LoginGuard } from '../../src/toolkit/device/login-guard.ts';
import { OwedStops } from '../../src/toolkit/device/owed-stops.ts';
import { Wake } from '../../src/toolkit/device/wake.ts';
import { outageLog } from '../../src/toolkit/device/outage-log.ts';
import { pinnedHttp } from '../../src/toolkit/device/pinned-http.ts';
import { stateFileName } from '../../src/toolkit/device/state-file.ts';
import { DeviceUnreachable, messageOf, RetryLater } from '../../src/platform/errors.ts';
import { aborted, sleep, within } from '../../src/platform/time.ts';
import { ChannelLayout } from './channels/channels.ts';
import { Contact } from './host/contact.ts';
import { type ChannelFacts, readChannels, unreported } from './channels/channel-list.ts';
import { describeHost } from './channels/describe.ts';
import { Device } from './host/device.ts';
import { GivenUp } from './host/rsp-codes.ts';
import type { Limits } from './limits.ts';
import { type Memory, openMemory, readPassword } from './host/remembered.ts';
import { Motors } from './commands/motors.ts';
import { Switches } from './commands/switches.ts';
import { texts } from './texts.ts';
import { type HostOptions, portOf, type VendorcamOptions } from './options.ts';
import { poll } from './channels/poll.ts';
import { Push } from './push/push.ts';
import type { Reported } from './channels/alarms.ts';
import type { vendorcamFeeds } from '../../src/contract/feeds.ts';
import type { ServedEntry } from '../../src/toolkit/device/configured-devices.ts';

export interface HostSessionParts extends Omit<
  ServedEntry<HostOptions, typeof vendorcamFeeds>,
  'device' | 'entry' | 'bindings'
> {
  readonly options: VendorcamOptions;
  readonly camera: HostOptions;
  readonly limits: Limits;
  /** Returns the key under which the device with these keys belongs to this entry; else why it does not. */
  readonly identify: (asset_keys: readonly [string, ...string[]]) => Identified;
  /** False when another host of this driver has the asset already. */
  readonly claim: (asset_key: string) => boolean;
}

export type Identified = { readonly asset_key: string } | { readonly refusal: string };

interface Served extends HostSessionParts {
  readonly device: Device;
  readonly name: DeviceName;
  readonly contact: Contact;
  readonly motors: Motors;
  readonly switches: Switches;
  readonly layout: ChannelLayout;
  readonly push: Push;
  readonly wake: Wake;
  readonly show: (status: HostStatus) => void;
}

interface HostStatus {
  readonly text: string;
  readonly isServed: boolean;
}

/** Runs until the host's signal aborts. */
export async function serveHost(parts: HostSessionParts): Promise<void> {
  const { host, camera, limits } = parts;
  const file = stateFileName('host', `${camera.host.toLowerCase()} ${portOf(camera)}`);
  const memory = await openMemory(host.stateFile(file), host.log);
  /** Ends later than the driver's signal: a Stop and the logout follow it. */
  const life = new AbortController();
  const served = build(parts, memory, life.signal);
  if (!camera.tls) {
    host.log.warn({ host: camera.name }, texts.no_tls);
  }
  const serving = Promise.all([keepServed(served), served.push.serve()]);
  try {
    await Promise.race([serving, aborted(host.signal)]);
    await within(limits.farewell_ms, farewell(served));
  } finally {
    life.abort();
    served.device.close();
  }
  await serving;
}

function build(parts: HostSessionParts, memory: Memory, life: AbortSignal): Served {
  const { host, camera, limits, options, claim, is_host_shared } = parts;
  const guard = new LoginGuard({ memory, limits });
  const name = new DeviceName({ host: camera.host, memory });
  const device = openDevice(parts, { memory, guard, name });
  const contact = new Contact();
  const save = async (owed_stops: readonly number[]) => memory.change({ owed_stops: [...owed_stops] });
  const owed = new OwedStops({ owed: memory.facts.owed_stops, save });
  const motors = new Motors({ device, limits, owed, signal: life });
  const owed_offs = new OwedStops({
    owed: memory.facts.owed_offs,
    save: async (offs) => memory.change({ owed_offs: [...offs] }),
  });
  const switches = new Switches({ device, limits, owed: owed_offs, stopping: host.signal, signal: life });
  const ptz_move_max_ms = options.ptz_move_max_s * 1_000;
  const shared = { device, contact, limits, signal: host.signal };
  const controls = { ...shared, motors, switches, allowed: camera.commands, ptz_move_max_ms };
  const waits = { heartbeat_ms: options.heartbeat_s * 1_000, settle_ms: limits.push_settle_ms };
  const layout = new ChannelLayout({
    host,
    options: camera,
    is_host_shared,
    device,
    place: name,
    controls,
    ...waits,
    claim,
  });
  let status: HostStatus = { text: '', isServed: false };
  const show = (next: HostStatus): void => {
    status = next;
    parts.showStatus(next.isServed && push.status !== '' ? `${next.text}; ${push.status}` : next.text);
  };
  const wake = new Wake();
  const onReports = (reports: readonly Reported[]): void => {
    if (layout.report(reports)) wake.trigger();
  };
  const onState = (): void => show(status);
  const push = new Push({
    host,
    camera,
    place: name,
    is_host_shared,
    limits,
    memory,
    guard,
    contact,
    onReports,
    onState,
  });
  return { ...parts, device, name, contact, motors, switches, layout, push, wake, show };
}

interface LoginParts {
  readonly memory: Memory;
  readonly guard: LoginGuard;
  readonly name: DeviceName;
}

function openDevice({ host, camera, limits }: HostSessionParts, { memory, guard, name }: LoginParts): Device {
  const { certificate_sha256: configured, tls, legacy_tls } = camera;
  const port = portOf(camera);
  const address = `${camera.host}:${port}`;
  const http = pinnedHttp({
    host: camera.host,
    name,
    port,
    tls,
    legacy_tls,
    check: certificateCheck({ configured, memory, address, log: host.log }),
    connect_ms: limits.request_ms,
    reply_bytes_max: limits.reply_bytes_max,
    refused_remedy: texts.refused_remedy,
  });
  return new Device({
    http,
    username: camera.username,
    password: async () => readPassword(camera.password_file),
    saved: memory.facts.session,
    save: async (session) => memory.change({ session }),
    guard,
    limits,
    signal: host.signal,
  });
}

/** Stops moves, ends detections, and logs out. */
async function farewell(served: Served): Promise<void> {
  const { motors, switches, layout, device } = served;
  layout.quiet(texts.connector_stopped);
  await motors.idle();
  await switches.idle();
  await settle(served).catch(() => undefined);
  await device.session.end();
}

/** Sends the Stops and Offs that are owed. Rejects with the first failure. */
async function settle({ motors, switches }: Served): Promise<void> {
  await motors.settle();
  await switches.settle();
}

async function keepServed(served: Served): Promise<void> {
  const { host, camera, limits, contact, layout } = served;
  const logOutage = outageLog({ log: host.log, kind: 'device', facts: { host: camera.name } });
  const expected = { reason: texts.rebooting, retry_ms: limits.reboot_retry_ms };
  await serveDevice({
    signal: host.signal,
    limits,
    run: async (_signal, onUp) => serve(served, onUp),
    expected: () => (contact.isExpectedBack ? expected : undefined),
    onState: (state) => {
      logOutage(state);
      if (state.state === 'up') contact.up();
      if ('reason' in state) {
        contact.down();
        layout.lose(state.reason);
        served.show({ text: state.reason, isServed: false });
      }
      served.onState(state);
    },
  });
}

/** Serves one connection until the signal aborts; rejects when the host is lost or rejects the login. */
async function serve(served: Served, onUp: () => void): Promise<void> {
  const { host, camera, limits, device, layout, contact, push, wake } = served;
  device.startAnew();
  const password = await readPassword(camera.password_file);
  await device.session.token();
  // A camera that still moves is stopped before all else.
  await settle(served).catch((error: unknown) => {
    host.log.warn({ host: camera.name, reason: messageOf(error) }, texts.owed_failed);
  });
  let known = await describe(served, password);
  onUp();
  let failures = 0;
  let losses = device.session.losses;
  while (!host.signal.aborted) {
    const begin_ms = performance.now();
    try {
      const { seen, channels } = await poll(device, layout.askings, known);
      failures = 0;
      if (device.session.losses > losses) {
        losses = device.session.losses;
        // It started again, or another device has taken its address.
        known = await describe(served, password);
        contact.up();
      }
      if (layout.see(seen, begin_ms)) push.distrust();
      // A camera that was away for less than a poll is never lost, and still needs its Stop.
      await settle(served).catch(() => undefined);
      if (isOutdated(known, channels, limits)) {
        known = await describe(served, password);
        // What a camera woke up for may be over soon.
        wake.trigger();
      }
    } catch (error) {
      if (host.signal.aborted) return;
      // A poll that was cancelled for a Stop is no evidence about the host.
      if (!(error instanceof GivenUp)) failures += 1;
      if (isFinal(error) || failures >= limits.lost_after_polls || (failures > 0 && contact.isExpectedBack)) {
        throw error;
      }
    }
    const pause_ms = pauseOf(served, performance.now() - begin_ms, failures);
    const least_ms = Math.min(pause_ms, limits.woken_gap_ms);
    await sleep(least_ms, host.signal);
    await wake.wait(pause_ms - least_ms, host.signal);
  }
}

function isOutdated(known: Known, channels: readonly ChannelFacts[] | undefined, limits: Limits): boolean {
  const isChanged = channels !== undefined && JSON.stringify(channels) !== known.shape;
  return isChanged || performance.now() - known.read_mono_ms >= limits.describe_again_ms;
}

/** Another device than the one of the entry answers. */
class OtherDevice extends DeviceUnreachable {}

function isFinal(error: unknown): boolean {
  const isFault = error instanceof DeviceUnreachable;
  return !isFault || error instanceof RetryLater || error instanceof OtherDevice;
}

/** Time from the begin of one poll to the begin of the next, with a minimum pause between them. */
function pauseOf({ options, limits, contact, push }: Served, took_ms: number, failures: number): number {
  const isSlow = failures > 0 || took_ms > limits.slow_reply_ms || push.isReporting;
  const interval_ms = (isSlow && !contact.isExpectedBack ? options.poll_slow_s : options.poll_s) * 1_000;
  return Math.max(interval_ms - took_ms, interval_ms / 4);
}

interface Known {
  readonly hasChannelList: boolean;
  /** Of the recorder's channels, as a poll reports them. */
  readonly shape: string;
  readonly read_mono_ms: number;
}

async function describe(served: Served, password: string): Promise<Known> {
  const { device, name, camera, limits, identify, layout, push, show } = served;
  const described = await describeHost(device, camera, limits);
  const identified = identify(described.asset_keys);
  if ('refusal' in identified) throw new OtherDevice(identified.refusal);
  await name.accept();
  const facts = { ...described, asset_key: identified.asset_key };
  const { channels, shape, isReported } = facts.isRecorder
    ? await readChannels(device, facts)
    : { channels: [unreported(0)], shape: '', isReported: false };
  await layout.arrange(facts, channels, password);
  const away = channels.filter(({ online, asleep }) => !online || asleep).length;
  push.describe(facts);
  const text = facts.isRecorder ? texts.online_channels(channels.length, away) : 'online';
  show({ text, isServed: true });
  return { hasChannelList: isReported, shape, read_mono_ms: performance.now() };
}
