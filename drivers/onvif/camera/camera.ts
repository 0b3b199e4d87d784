/** Serves one camera: connects, reads its identity, receives its events, reconnects after a loss. */
import { isDeepStrictEqual } from 'node:util';
import type { onvifFeeds } from '../../../src/contract/feeds.ts';
import type { ServedEntry } from '../../../src/toolkit/device/configured-devices.ts';
import { DeviceName } from '../../../src/toolkit/device/device-name.ts';
import { serveDevice } from '../../../src/toolkit/device/device-session.ts';
import { credentialsHash, LoginGuard, LoginRefused } from '../../../src/toolkit/device/login-guard.ts';
import { OwedStops } from '../../../src/toolkit/device/owed-stops.ts';
import { readSecretFile } from '../../../src/toolkit/device/secret-file.ts';
import { outageLog } from '../../../src/toolkit/device/outage-log.ts';
import type { Command } from '../../../src/toolkit/driver/command.ts';
import type { ReportedHealth } from '../../../src/toolkit/driver/driver.ts';
import { logRefused } from '../../../src/toolkit/driver/refused-addresses.ts';
import { DeviceUnreachable, messageOf, RetryLater } from '../../../src/platform/errors.ts';
import { every, sleep } from '../../../src/platform/time.ts';
import { commandsOf } from './commands.ts';
import {
  bare,
  type Device,
  expectSameCamera,
  hasChanged,
  type LoggedIn,
  logIn,
  readDevice,
  type Source,
} from './device.ts';
import type { Unread } from './media.ts';
import type { MotorTurns } from './movement.ts';
import type { Detections } from '../events/detections.ts';
import { receiveEvents } from '../events/events.ts';
import type { Limits } from '../limits.ts';
import { type CameraOptions, type OnvifOptions, portOf } from '../options.ts';
import { type CameraMemory, openMemory, settleStops } from './ptz-stop.ts';
import { texts } from '../texts.ts';
import { type Served, ServedSources } from './served.ts';
import { divide, planSources } from './sources.ts';
import { openLine } from '../soap/line.ts';
import type { Soap, ServiceName } from '../soap/soap.ts';
import type { XmlNode } from '../soap/xml.ts';
import { untilAborted } from '../waiting.ts';
import { ownTopics, type UnreadTopics } from '../events/topics.ts';
import type { Webhook } from '../events/webhook.ts';
import { fails, type Health, notOffered, works } from '../../../src/toolkit/driver/health.ts';

export interface CameraParts extends Omit<
  ServedEntry<CameraOptions, typeof onvifFeeds>,
  'device' | 'showStatus'
> {
  readonly camera: CameraOptions;
  readonly options: OnvifOptions;
  readonly webhook: Webhook;
  /** Receives topics of events that have no meaning here. */
  readonly unread: UnreadTopics;
  /** MAC address by key, of the cameras that have answered: some share one serial number. */
  readonly macs: Map<string, string>;
  readonly limits: Limits;
  /** Registers work that must finish before the driver ends: the stop of a moving camera. */
  readonly stopping: (stop: Promise<unknown>) => void;
  /** Aborts when that work is done or takes too long: no request is sent afterwards. */
  readonly ending: AbortSignal;
}

/** Runs until the host's signal aborts. Never rejects. */
export async function serveCamera(parts: CameraParts): Promise<void> {
  const { camera, options, host, limits, onState } = parts;
  const logOutage = outageLog({ log: host.log, kind: 'camera', facts: { camera: camera.name } });
  const served = new ServedSources({
    host,
    heartbeat_ms: options.heartbeat_s * 1_000,
    motion_hold_max_ms: options.motion_hold_max_s * 1_000,
  });
  const memory = await openMemory(host, camera);
  const save = async (owed_stops: readonly string[]) => memory.change({ owed_stops: [...owed_stops] });
  const guard = new LoginGuard({ memory, limits });
  const name = new DeviceName({ host: camera.host, memory });
  const owed = new OwedStops({ owed: memory.facts.owed_stops, save });
  let line: Soap | undefined;
  /** The earlier line may still carry the stop of a movement, so it is closed only now. */
  const open = async (): Promise<Soap> => {
    line?.close();
    line = await connect(parts, name);
    return line;
  };
  await serveDevice({
    signal: host.signal,
    limits,
    run: async (signal, onUp) =>
      serveOnce({ ...parts, memory, name, owed, guard }, served, { open, onUp, signal }),
    onState: (state) => {
      logOutage(state);
      if ('reason' in state) served.lose(state.reason);
      onState(state);
    },
  });
  await owed.idle();
}

interface CameraRun extends CameraParts {
  readonly memory: CameraMemory;
  readonly name: DeviceName;
  readonly guard: LoginGuard;
  /** By profile. */
  readonly owed: OwedStops<string>;
}

interface Run {
  readonly open: () => Promise<Soap>;
  readonly onUp: () => void;
  readonly signal: AbortSignal;
}

/** One connection, from the first question to the loss. */
async function serveOnce(
  parts: CameraRun,
  served: ServedSources,
  { open, onUp, signal }: Run,
): Promise<void> {
  const { host, camera, options, unread } = parts;
  let entered: Soap | undefined;
  try {
    const soap = await open();
    const login = await untilAborted(enter(parts, soap), signal);
    if (!login) return;
    entered = soap;
    // A camera that still moves is stopped before all else.
    await settle(parts, soap);
    const device = await untilAborted(readDevice(soap, login, camera), signal);
    if (!device) return;
    logUnread(parts, device);
    const asset_key = await identify(parts, device);
    const shown = await shownSources(parts, device, asset_key);
    await parts.name.accept();
    await rememberMotor(parts, device);
    const detections = await untilAborted(beginAll(parts, served, { device, shown, soap, signal }), signal);
    if (!detections) return;
    onUp();
    void keepSettling(parts, soap, signal);
    await receiveEvents({
      ...parts,
      log: host.log,
      pull_s: options.pull_s,
      soap,
      device,
      expectAlive: async () => expectSameCamera(soap, { ...device, asset_key }),
      detections: [...detections.values()],
      reading: { own: ownTopics(options.events, camera.name), onUnread: (topic) => unread.note(topic) },
      divide: (body) => messagesOf(body, device, detections),
      onHealth: (health) => served.setEvents(health),
      signal: AbortSignal.any([signal, whenChanged(parts, device, soap, signal)]),
    });
    if (!signal.aborted) throw new RetryLater(texts.complete_again, 0);
  } catch (error) {
    // It accepted the login of this connection: it may be booting.
    if (!entered || !(error instanceof LoginRefused)) throw error;
    throw await parts.guard.refuse(credentialsOf(entered), error.message);
  }
}

interface Beginning {
  readonly device: Device;
  readonly shown: readonly Shown[];
  readonly soap: Soap;
  readonly signal: AbortSignal;
}

/** Announces the assets with their commands; resolves with what each detects, by video source. */
async function beginAll(
  { options, stopping, owed, limits }: CameraRun,
  served: ServedSources,
  { device, shown, soap, signal }: Beginning,
): Promise<ReadonlyMap<string, Detections>> {
  const detections = new Map<string, Detections>();
  const turns = new Map<string, MotorTurns>();
  const motor = { owed, move_ms: options.ptz.move_s * 1_000, signal, stopping };
  for (const { source, end, about } of shown) {
    const asset = served.of(end);
    const offer = (commands: readonly Command[]): void => asset.offer(commands);
    const { services } = device;
    const offered = await commandsOf({ soap, services, source, isDevice: end === '', motor, turns, offer });
    if (signal.aborted) break;
    detections.set(source.token, asset.begin(about, offered.commands, signal));
    every(limits.presets_again_ms, signal, () => void offered.refresh());
  }
  const ends = shown.map(({ end }) => end);
  if (!signal.aborted) served.keep(ends, device.profiles_unread?.fault ?? texts.source_gone);
  return detections;
}

/** A video source as an asset. */
interface Shown {
  readonly source: Source;
  /** Of the key, behind that of the device; empty for the first source, which is the device itself. */
  readonly end: string;
  readonly about: Parameters<Served['begin']>[0];
}

/** The assets of the device, the first one with its key. Rejects when the options name a source that it never had. */
async function shownSources(
  { camera, host, memory }: CameraRun,
  device: Device,
  asset_key: string,
): Promise<readonly [Shown, ...Shown[]]> {
  const { sources, information } = device;
  const listed = sources.map(({ token }) => token);
  const remembered = memory.facts.sources;
  const chosen = camera.sources?.map(({ token }) => token);
  const plan = planSources(listed, remembered, sources.length > 0 ? chosen : []);
  if (plan.unknown.length > 0) {
    throw new DeviceUnreachable(texts.unknown_source(quoted(plan.unknown), quoted(listed)));
  }
  if (sources.length > 0 && !isDeepStrictEqual(plan.tokens, remembered)) {
    if (plan.tokens.length > 1) {
      host.log.info({ camera: camera.name, sources: plan.tokens.join(', ') }, texts.several_sources);
    }
    const ends = new Set(plan.tokens.map(endOf));
    // What the options do not choose any more, or what another device had.
    for (const end of remembered.map(endOf).filter((each) => !ends.has(each))) {
      const left = { asset_key: `${asset_key}${end}`, name: camera.name, type: 'camera' } as const;
      host.announce({ ...left, protocol: 'onvif', offline_reason: texts.source_gone }).remove();
    }
    await memory.change({ sources: [...plan.tokens] });
  }
  const { manufacturer: vendor, model, firmware } = information;
  const describe = (token: string, index: number): Shown => {
    const source = sources.find((each) => each.token === token) ?? bare(token);
    const end = endOf(token, index);
    const { stream, stream_unread, takePicture, takeAlarmPicture, requestKeyFrame } = source;
    const numbered = index === 0 ? camera.name : `${camera.name} ${index + 1}`;
    const about = {
      asset_key: `${asset_key}${end}`,
      parent_key: index === 0 ? null : asset_key,
      name: camera.sources?.find((each) => each.token === token)?.name ?? numbered,
      vendor,
      model,
      firmware,
      rtsp_url: stream?.rtsp_url,
      takePicture,
      health: healthOf(device, source),
      takeAlarmPicture,
      requestKeyFrame,
      // The device itself answers, whatever it shows.
      offline_reason: index === 0 ? null : (stream_unread?.fault ?? null),
    };
    return { source, end, about };
  };
  const [main, ...others] = plan.tokens.map(describe);
  return [main ?? describe('', 0), ...others.filter(({ source: { token } }) => listed.includes(token))];
}

function endOf(token: string, index: number): string {
  return index === 0 ? '' : `:source:${token}`;
}

function quoted(tokens: readonly string[]): string {
  return tokens.map((token) => `"${token}"`).join(', ');
}

/** Each message belongs to the asset of its video source; to the device itself where it names none. */
function messagesOf(
  body: XmlNode,
  { profiles, sources }: Device,
  detections: ReadonlyMap<string, Detections>,
): readonly (readonly [Detections, XmlNode])[] {
  const [main] = detections.values();
  if (main && detections.size === 1 && sources.length <= 1) return [[main, body]];
  return Array.from(divide(body, profiles), ([token, messages]) => {
    const own = detections.get(token) ?? (token === '' ? main : undefined);
    return own && ([own, messages] as const);
  }).filter((each) => each !== undefined);
}

/** Logs in, unless these credentials were refused lately. What worked before is tried alone while a refusal may pass. */
async function enter({ camera, guard, memory }: CameraRun, soap: Soap): Promise<LoggedIn> {
  const credentials = credentialsOf(soap);
  guard.admit(credentials);
  const { login_way } = memory.facts;
  const auth = login_way !== undefined && guard.mayPass(credentials) ? login_way : camera.auth;
  try {
    const login = await logIn(soap, { ...camera, auth });
    await guard.accept(credentials);
    if (soap.login !== 'none' && soap.login !== login_way) await memory.change({ login_way: soap.login });
    return login;
  } catch (error) {
    throw error instanceof LoginRefused ? await guard.refuse(credentials, error.message) : error;
  }
}

function credentialsOf({ connection: { username = '', password = '' } }: Soap): string {
  return credentialsHash(username, password);
}

/** Sends the Stops that are owed; what fails is tried again. */
async function settle({ host, camera, owed, memory }: CameraRun, soap: Soap): Promise<void> {
  try {
    await settleStops(soap, owed, memory);
  } catch (error) {
    host.log.warn({ camera: camera.name, reason: messageOf(error) }, texts.stop_failed);
  }
}
const settle_every_ms = 5_000;

/** Runs until the signal aborts; waits without a timer while nothing is owed. Never rejects. */
async function keepSettling(parts: CameraRun, soap: Soap, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await parts.owed.untilOwed(signal);
    await sleep(settle_every_ms, signal);
    if (!signal.aborted) await settle(parts, soap);
  }
}

async function connect(
  { camera, host, ending, is_host_shared }: CameraParts,
  name: DeviceName,
): Promise<Soap> {
  const password =
    camera.password_file === undefined
      ? undefined
      : await readSecretFile('password_file', camera.password_file);
  const connection = {
    host: camera.host,
    name,
    port: portOf(camera),
    path: camera.path,
    secure: camera.tls !== undefined,
    fingerprint: camera.tls?.fingerprint,
    legacy_tls: camera.tls?.legacy === true,
    allow_plain_rtsp: camera.allow_plain_rtsp,
    rtsp_port: camera.rtsp_port,
    is_host_shared,
    username: camera.username,
    password,
    onRefused: logRefused(host.log, { camera: camera.name }),
  };
  return openLine(connection, ending);
}

/** Once for each connection: rights of the user at the camera are a usual cause. */
function logUnread({ camera, host }: CameraRun, { profiles_unread, sources }: Device): void {
  const log = ({ fault: reason, remedy }: Unread, sentence: string): void =>
    host.log.warn({ camera: camera.name, reason, remedy }, sentence);
  if (profiles_unread) log(profiles_unread, texts.profiles_refused);
  const unread = sources.find(({ stream_unread }) => stream_unread)?.stream_unread;
  if (unread) log(unread, texts.stream_refused);
}

/** Aborts once the camera, which may have been booting, answers what it had refused, or a recorder has other channels. */
function whenChanged(
  { camera, limits }: CameraRun,
  device: Device,
  soap: Soap,
  signal: AbortSignal,
): AbortSignal {
  const changed = new AbortController();
  const ask = async (ms: number): Promise<void> => {
    while (!signal.aborted && !changed.signal.aborted) {
      await sleep(ms, signal);
      if (!signal.aborted && (await hasChanged(soap, device, camera))) changed.abort();
    }
  };
  const { profiles_unread, sources } = device;
  const unread = [profiles_unread, ...sources.map(({ stream_unread }) => stream_unread)];
  if (unread.some((each) => each?.may_pass === true)) void ask(limits.unread_again_ms);
  else if (sources.length > 1) void ask(limits.presets_again_ms);
  return changed.signal;
}

/** The key under which the camera belongs to its entry; rejects when it does not. */
async function identify(run: CameraRun, device: Device): Promise<string> {
  const { bindings, entry, memory, macs } = run;
  const { mac } = device;
  const bound = bindings.keyOf(entry);
  const asset_key = bound === undefined ? firstKey(run, device) : boundKey(run, device, bound);
  const refusal = bindings.claim(entry, asset_key);
  if (refusal !== undefined) throw new DeviceUnreachable(refusal);
  if (mac === undefined) return asset_key;
  macs.set(asset_key, mac);
  if (mac !== memory.facts.mac) await memory.change({ mac });
  return asset_key;
}

/** Of a camera that is contacted for the first time: the best key that is not one of another camera. */
function firstKey({ bindings, entry, camera, host, macs }: CameraRun, device: Device): string {
  const {
    asset_keys,
    mac,
    information: { serial },
  } = device;
  const isOfAnother = (key: string): boolean =>
    bindings.isOthers(entry, key) && mac !== undefined && (macs.get(key) ?? mac) !== mac;
  const own = asset_keys.find((key) => !isOfAnother(key)) ?? asset_keys[0];
  if (own !== asset_keys[0]) host.log.warn({ camera: camera.name, serial, mac }, texts.serial_shared);
  return own;
}

/** Some cameras change their serial number with each start. */
function boundKey(
  { bindings, entry, camera, host, memory }: CameraRun,
  device: Device,
  bound: string,
): string {
  const {
    asset_keys,
    mac,
    information: { serial },
  } = device;
  if (asset_keys.includes(bound)) return bound;
  const isClaim = asset_keys.some((key) => bindings.isOthers(entry, key));
  if (isClaim || mac === undefined || mac !== memory.facts.mac) return asset_keys[0];
  host.log.warn({ camera: camera.name, serial, mac }, texts.serial_changed);
  return bound;
}

/** The address of the motor is on disk before the first movement. */
async function rememberMotor({ memory }: CameraRun, { services, sources }: Device): Promise<void> {
  const ptz_url = services.get('ptz');
  const isKnown = sources.every(({ ptz }) => !ptz) || ptz_url === memory.facts.ptz_url;
  if (!isKnown) await memory.change({ ptz_url });
}

// Why a camera has no stream, pictures or commands: in its own words, as far as it gave some. Its events report theirs (`events.ts`).

/** What is missing of this video source. What may pass is asked for again every two minutes. */
function healthOf(
  device: Pick<Device, 'profiles_unread' | 'unusable'>,
  { stream_unread, stream, still, ptz, takePicture }: Source,
): ReportedHealth {
  const failing = ({ fault, remedy }: Unread): Health =>
    fails(remedy === undefined ? fault : `${fault}; ${remedy}`);
  const profiles = device.profiles_unread && failing(device.profiles_unread);
  const withoutMedia = profiles ?? without(device, ['media', 'media2']);
  const streamFault = stream?.stream_fault ?? null;
  return {
    state: works,
    ...(stream === undefined && {
      stream: stream_unread ? failing(stream_unread) : withoutMedia,
    }),
    ...(streamFault !== null && { stream: fails(streamFault) }),
    ...(takePicture === undefined && { still: still ?? withoutMedia }),
    commands: (ptz === undefined ? profiles : undefined) ?? without(device, ['ptz']),
  };
}

/** Of a service that the camera does not have, or whose address cannot be used. */
function without({ unusable }: Pick<Device, 'unusable'>, services: readonly ServiceName[]): Health {
  const reason = services.map((service) => unusable.get(service)).find((each) => each !== undefined);
  return reason === undefined ? notOffered() : fails(reason);
}
