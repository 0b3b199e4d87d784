/** Serves one camera: connects, reads its identity, receives its events, reconnects after a loss. */
import { isDeepStrictEqual } from 'node:util';
import type { onvifFeeds } from '../../../src/contract/feeds.ts';
import { DeviceName } from '../../../src/toolkit/device/device-name.ts';
import { serveDevice, type SessionState } from '../../../src/toolkit/device/device-session.ts';
import { credentialsHash, LoginGuard, LoginRefused } from '../../../src/toolkit/device/login-guard.ts';
import { OwedStops } from '../../../src/toolkit/device/owed-stops.ts';
import { readSecretFile } from '../../../src/toolkit/device/secret-file.ts';
import { outageLog } from '../../../src/toolkit/device/outage-log.ts';
import type { Command } from '../../../src/toolkit/driver/command.ts';
import type { DriverHost } from '../../../src/toolkit/driver/driver.ts';
import type { IdentityBindings } from '../../../src/toolkit/driver/identity-bindings.ts';
import { logRefused } from '../../../src/toolkit/driver/refused-addresses.ts';
import { DeviceUnreachable, messageOf, RetryLater } from '../../../src/platform/errors.ts';
import { every, sleep } from '../../../src/platform/time.ts';
import { type Device, expectSameCamera, isComplete, type LoggedIn, logIn, readDevice } from './device.ts';
import type { Unread } from './media.ts';
import { receiveEvents } from '../events/events.ts';
import type { Limits } from '../limits.ts';
import { type CameraOptions, entryOf, type OnvifOptions, portOf } from '../options.ts';
import { type CameraMemory, openMemory } from './remembered.ts';
import { readPresets } from './presets.ts';
import { ptzOffer, readPtzAbilities } from './ptz.ts';
import { texts } from '../texts.ts';
import { settleStops } from './ptz-stop.ts';
import { Served } from './served.ts';
import { openLine } from '../soap/line.ts';
import type { Soap } from '../soap/soap.ts';
import { untilAborted } from '../waiting.ts';
import { ownTopics, type UnreadTopics } from '../events/topics.ts';
import type { Webhook } from '../events/webhook.ts';

export interface CameraParts {
  readonly camera: CameraOptions;
  readonly options: OnvifOptions;
  /** Other cameras are configured at the host of this one, which is not the gateway. */
  readonly is_host_shared: boolean;
  readonly host: DriverHost<typeof onvifFeeds>;
  readonly webhook: Webhook;
  /** Receives topics of events that have no meaning here. */
  readonly unread: UnreadTopics;
  /** Name of the camera that owns this key now. */
  readonly owners: Map<string, string>;
  /** Which camera belongs to which entry, over restarts. */
  readonly bindings: IdentityBindings;
  /** MAC address by key, of the cameras that have answered: some share one serial number. */
  readonly macs: Map<string, string>;
  readonly onState: (state: SessionState) => void;
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
  const served = new Served({
    name: camera.name,
    host,
    heartbeat_ms: options.heartbeat_s * 1_000,
    motion_hold_max_ms: options.motion_hold_max_s * 1_000,
    isServed: (asset_key) => parts.owners.has(asset_key),
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
async function serveOnce(parts: CameraRun, served: Served, { open, onUp, signal }: Run): Promise<void> {
  const { host, camera, options, owners, unread } = parts;
  let key: string | undefined;
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
    claim(owners, asset_key, camera.name);
    key = asset_key;
    await parts.name.accept();
    await rememberMotor(parts, device);
    const offered = await untilAborted(commandsOf(parts, device, soap, signal), signal);
    if (!offered) return;
    const detections = served.begin({ ...device, asset_key }, offered.commands, signal);
    every(parts.limits.presets_again_ms, signal, () => void offered.refresh(served));
    onUp();
    void keepSettling(parts, soap, signal);
    await receiveEvents({
      ...parts,
      log: host.log,
      pull_s: options.pull_s,
      soap,
      device,
      expectAlive: async () => expectSameCamera(soap, { ...device, asset_key }),
      detections,
      reading: { own: ownTopics(options.events, camera.name), onUnread: (topic) => unread.note(topic) },
      signal: AbortSignal.any([signal, whenComplete(parts, device, soap, signal)]),
    });
    if (!signal.aborted) throw new RetryLater(texts.complete_again, 0);
  } catch (error) {
    // It accepted the login of this connection: it may be booting.
    if (!entered || !(error instanceof LoginRefused)) throw error;
    throw await parts.guard.refuse(credentialsOf(entered), error.message);
  } finally {
    if (key !== undefined) owners.delete(key);
  }
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
function logUnread({ camera, host }: CameraRun, { profiles_unread, stream_unread }: Device): void {
  const log = ({ fault: reason }: Unread, remedy: string, sentence: string): void =>
    host.log.warn({ camera: camera.name, reason, remedy }, sentence);
  if (profiles_unread) log(profiles_unread, texts.profiles_remedy, texts.profiles_refused);
  if (stream_unread) log(stream_unread, texts.stream_remedy, texts.stream_refused);
}

/** Aborts once the camera, which may have been booting, answers what it had refused. */
function whenComplete({ limits }: CameraRun, device: Device, soap: Soap, signal: AbortSignal): AbortSignal {
  const complete = new AbortController();
  const ask = async (): Promise<void> => {
    while (!signal.aborted && !complete.signal.aborted) {
      await sleep(limits.unread_again_ms, signal);
      if (!signal.aborted && (await isComplete(soap, device))) complete.abort();
    }
  };
  const { profiles_unread, stream_unread } = device;
  if (profiles_unread?.may_pass === true || stream_unread?.may_pass === true) void ask();
  return complete.signal;
}

/** Refuses a camera under two addresses: it would be two assets with one key. */
function claim(owners: Map<string, string>, asset_key: string, name: string): void {
  const owner = owners.get(asset_key);
  if (owner !== undefined) {
    throw new DeviceUnreachable(texts.same_camera(owner, asset_key));
  }
  owners.set(asset_key, name);
}

/** The key under which the camera belongs to its entry; rejects when it does not. */
async function identify(run: CameraRun, device: Device): Promise<string> {
  const { bindings, camera, memory, macs } = run;
  const { mac } = device;
  const entry = entryOf(camera);
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
function firstKey({ bindings, camera, host, macs }: CameraRun, device: Device): string {
  const {
    asset_keys,
    mac,
    information: { serial },
  } = device;
  const entry = entryOf(camera);
  const isOfAnother = (key: string): boolean =>
    bindings.isOthers(entry, key) && mac !== undefined && (macs.get(key) ?? mac) !== mac;
  const own = asset_keys.find((key) => !isOfAnother(key)) ?? asset_keys[0];
  if (own !== asset_keys[0]) host.log.warn({ camera: camera.name, serial, mac }, texts.serial_shared);
  return own;
}

/** Some cameras change their serial number with each start. */
function boundKey({ bindings, camera, host, memory }: CameraRun, device: Device, bound: string): string {
  const {
    asset_keys,
    mac,
    information: { serial },
  } = device;
  if (asset_keys.includes(bound)) return bound;
  const isClaim = asset_keys.some((key) => bindings.isOthers(entryOf(camera), key));
  if (isClaim || mac === undefined || mac !== memory.facts.mac) return asset_keys[0];
  host.log.warn({ camera: camera.name, serial, mac }, texts.serial_changed);
  return bound;
}

/** The address of the motor is on disk before the first movement. */
async function rememberMotor({ memory }: CameraRun, { services, ptz_profile }: Device): Promise<void> {
  const ptz_url = services.get('ptz');
  const isKnown = ptz_profile === undefined || ptz_url === memory.facts.ptz_url;
  if (!isKnown) await memory.change({ ptz_url });
}

interface Offered {
  readonly commands: readonly Command[];
  /** Offers them again when the presets of the camera have changed; never rejects. */
  readonly refresh: (served: Served) => Promise<void>;
}

async function commandsOf(
  { options, stopping, owed }: CameraRun,
  { ptz_profile: profile, services }: Device,
  soap: Soap,
  signal: AbortSignal,
): Promise<Offered> {
  const url = services.get('ptz');
  if (profile === undefined || url === undefined) {
    return { commands: [], refresh: async () => Promise.resolve() };
  }
  const move_ms = options.ptz.move_s * 1_000;
  let abilities = await readPtzAbilities(soap, url, profile);
  const offer = ptzOffer({ soap, url, profile, owed, move_ms, signal, stopping });
  return {
    commands: offer(abilities),
    async refresh(served) {
      const read = await readPresets({ soap, url, profile });
      if ('fault' in read || signal.aborted || isDeepStrictEqual(read.presets, abilities.presets)) return;
      abilities = { ...abilities, presets: read.presets };
      served.offer(offer(abilities));
    },
  };
}
