/** Keeps one host's connection for events: when it is tried, what its state is, and whether its reports can be relied on. */
import { serveDevice, type SessionState } from '../../../src/toolkit/device/device-session.ts';
import type { DeviceName } from '../../../src/toolkit/device/device-name.ts';
import { credentialsHash, LoginGuard } from '../../../src/toolkit/device/login-guard.ts';
import { isOwnHost } from '../../../src/toolkit/device/own-host.ts';
import { DeviceRejected, DeviceUnreachable, messageOf, RetryLater } from '../../../src/platform/errors.ts';
import type { Host } from '../channels/channels.ts';
import type { HostFacts } from '../channels/describe.ts';
import type { Contact } from '../host/contact.ts';
import { type Memory, readPassword } from '../host/remembered.ts';
import type { Limits } from '../limits.ts';
import type { HostOptions } from '../options.ts';
import { texts } from '../texts.ts';
import type { Reported } from '../channels/alarms.ts';
import { connect, type Socket } from 'node:net';
import { unreachable } from '../../../src/toolkit/device/pinned-http.ts';
import { deadline, every } from '../../../src/platform/time.ts';
import { aesKey, hashOf, textIn, xor } from './cipher.ts';
import {
  classes,
  commands,
  type Frame,
  frameBytes,
  FrameReader,
  offers_aes,
  origins,
  statuses,
} from './wire.ts';
import { aiType } from '../../../src/contract/feeds.ts';

interface PushConnection {
  readonly host: string;
  readonly port: number;
  readonly username: string;
  readonly password: string;
  readonly limits: Limits;
  readonly signal: AbortSignal;
  /** The device accepted the subscription. */
  readonly onUp: () => void;
  readonly onReports: (reports: readonly Reported[]) => void;
}

/** The device refused name and password. */
class PushRefused extends DeviceRejected {}

/** Resolves when `signal` aborts; rejects when the connection is lost or refused. Never sends the password. */
export async function receivePush(parts: PushConnection): Promise<void> {
  const { host, port, signal, limits } = parts;
  // The driver may have ended while the password was read.
  if (signal.aborted) return;
  const socket = connect({ host, port });
  const onAbort = (): void => void socket.destroy();
  signal.addEventListener('abort', onAbort, { once: true });
  // A reply that drips ends at its deadline too: only whole frames count.
  const endAfter = (ms: number): (() => void) => deadline(ms, () => socket.destroy(silent()));
  let cancel = endAfter(limits.push_login_ms);
  const conversation = new Conversation(parts, socket);
  try {
    socket.once('connect', () => conversation.begin());
    await conversation.receive(() => {
      cancel();
      cancel = endAfter(limits.push_silent_ms);
    });
    if (!signal.aborted) throw new DeviceUnreachable(texts.push_closed);
  } catch (error) {
    if (!signal.aborted) throw unreachable(error, texts.push_port_closed);
  } finally {
    cancel();
    signal.removeEventListener('abort', onAbort);
    conversation.end();
    socket.destroy();
  }
}

function silent(): DeviceUnreachable {
  return new DeviceUnreachable(texts.push_silent);
}

class Conversation {
  readonly #parts: PushConnection;
  readonly #socket: Socket;
  readonly #over = new AbortController();
  #key: Buffer | undefined;
  #state: 'asked for a nonce' | 'logging in' | 'subscribing' | 'subscribed' = 'asked for a nonce';
  #sent = 0;
  #second_mono_ms = 0;
  #answered_mono_ms = Number.NEGATIVE_INFINITY;
  #frames_in_second = 0;

  constructor(parts: PushConnection, socket: Socket) {
    this.#parts = parts;
    this.#socket = socket;
  }

  begin(): void {
    this.#send({ command: commands.login, class: classes.hello, status: offers_aes });
  }

  end(): void {
    this.#over.abort();
  }

  /** Resolves when the device closed the connection. `onAlive`: a frame has come since the login. */
  async receive(onAlive: () => void): Promise<void> {
    const { limits } = this.#parts;
    const reader = new FrameReader(limits.push_frame_bytes_max);
    for await (const chunk of this.#socket) {
      if (!Buffer.isBuffer(chunk)) continue;
      for (const frame of reader.take(chunk)) {
        this.#count();
        this.#take(frame);
        if (this.#state === 'subscribed') onAlive();
      }
    }
  }

  #count(): void {
    const now_mono_ms = performance.now();
    if (now_mono_ms - this.#second_mono_ms >= 1_000) {
      this.#second_mono_ms = now_mono_ms;
      this.#frames_in_second = 0;
    }
    this.#frames_in_second += 1;
    const max = this.#parts.limits.push_frames_per_s_max;
    if (this.#frames_in_second > max) throw new DeviceUnreachable(texts.push_flood(max));
  }

  #take(frame: Frame): void {
    if (frame.command === commands.login) this.#logIn(frame);
    else if (this.#key === undefined) return;
    else if (frame.command === commands.subscribe) this.#subscribed(frame);
    else if (frame.command === commands.alarms) this.#report(frame);
    else if (frame.command === commands.heartbeat && frame.payload.length === 0) this.#answer(frame);
  }

  /** Not more often than devices ask: two sides that answer each other's answers would never stop. */
  #answer(heartbeat: Frame): void {
    const now_mono_ms = performance.now();
    if (now_mono_ms - this.#answered_mono_ms < this.#parts.limits.push_heartbeat_ms) return;
    this.#answered_mono_ms = now_mono_ms;
    this.#socket.write(frameBytes({ ...heartbeat, class: classes.request, status: statuses.ok }));
  }

  /** The nonce, then the reply to the login. */
  #logIn(frame: Frame): void {
    const { username, password } = this.#parts;
    if (this.#state === 'asked for a nonce') {
      const nonce = nonceIn(textIn(frame, undefined) ?? '');
      if (frame.class !== classes.nonce || nonce === undefined)
        throw new DeviceUnreachable(texts.push_no_nonce);
      this.#key = aesKey(nonce, password);
      this.#state = 'logging in';
      const body = loginText(hashOf(`${username}${nonce}`), hashOf(`${password}${nonce}`));
      this.#send({ command: commands.login, class: classes.request, status: 0 }, body);
    } else if (this.#state === 'logging in') {
      if (frame.status === statuses.unauthorized) throw new PushRefused(texts.push_refused);
      if (frame.status !== statuses.ok) throw new DeviceUnreachable(texts.push_login_status(frame.status));
      this.#state = 'subscribing';
      this.#send({ command: commands.subscribe, class: classes.request, status: 0 });
    }
  }

  #subscribed({ status }: Frame): void {
    if (this.#state !== 'subscribing') return;
    if (status !== statuses.ok) throw new DeviceUnreachable(texts.push_subscribe_status(status));
    this.#state = 'subscribed';
    this.#parts.onUp();
    every(this.#parts.limits.push_keep_alive_ms, this.#over.signal, () =>
      this.#send({ command: commands.keep_alive, class: classes.request, status: 0 }),
    );
  }

  #report(frame: Frame): void {
    const reports = reportsIn(textIn(frame, this.#key) ?? '');
    if (reports) this.#parts.onReports(reports);
  }

  #send(head: Pick<Frame, 'command' | 'class' | 'status'>, body = ''): void {
    this.#sent = (this.#sent + 1) & 0xffff;
    const origin = head.command === commands.subscribe ? origins.events : origins.device;
    const id = this.#sent * 256 + origin;
    this.#socket.write(frameBytes({ ...head, id, payload: xor(Buffer.from(body), id) }));
  }
}

function loginText(user_hash: string, password_hash: string): string {
  return [
    '<?xml version="1.0" encoding="UTF-8" ?>',
    '<body>',
    '<LoginUser version="1.1">',
    `<userName>${user_hash}</userName>`,
    `<password>${password_hash}</password>`,
    '<userVer>1</userVer>',
    '</LoginUser>',
    '<LoginNet version="1.1">',
    '<type>LAN</type>',
    '<udpPort>0</udpPort>',
    '</LoginNet>',
    '</body>',
    '',
  ].join('\n');
}

// Reads the XML of the vendor's own protocol: nonces and alarms. Pure, and bounded in length, depth and count.

interface Element {
  readonly name: string;
  readonly depth: number;
  /** Directly after its start tag. */
  readonly text: string;
}

const text_chars_max = 65_536;
const value_chars_max = 256;
const elements_max = 4_096;
const depth_max = 16;
/** Channels of the largest recorder. */
const events_max = 64;
const channel_max = 255;

/** Undefined without one. */
export function nonceIn(text: string): string | undefined {
  const nonce = elementsOf(text)?.find(({ name }) => name === 'nonce')?.text;
  return nonce === '' ? undefined : nonce;
}

/** Undefined when the text is no list of alarms. Other events in it, such as day and night, are left out. */
export function reportsIn(text: string): readonly Reported[] | undefined {
  const elements = elementsOf(text);
  if (!elements?.some(({ name }) => name === 'AlarmEventList')) return undefined;
  const events = [...elements.entries()].filter(([, { name }]) => name === 'AlarmEvent').slice(0, events_max);
  return events.flatMap(([at, { depth }]) => {
    const rest = elements.slice(at + 1);
    const end = rest.findIndex((each) => each.depth <= depth);
    const children = (end < 0 ? rest : rest.slice(0, end)).filter((each) => each.depth === depth + 1);
    return reportOf(new Map(children.map((child) => [child.name, child.text]))) ?? [];
  });
}

/** `status` is none, or MD, visitor and others; `AItype` is none, or kinds. */
function reportOf(values: ReadonlyMap<string, string>): Reported | undefined {
  const digits = values.get('channelId') ?? '';
  const channel = /^\d{1,3}$/u.test(digits) ? Number(digits) : channel_max + 1;
  if (channel > channel_max) return undefined;
  const states = wordsOf(values.get('status'));
  const kinds = wordsOf(values.get('AItype'));
  // The infrared sensor of battery cameras is the kind "other", as in GetEvents.
  const sensed = kinds?.includes('other') === true;
  return {
    channel,
    motion: states === undefined && !sensed ? undefined : sensed || states?.includes('MD') === true,
    visitor: states?.includes('visitor'),
    ai: kinds && aiType.options.filter((type) => kinds.includes(type)),
  };
}

function wordsOf(value: string | undefined): readonly string[] | undefined {
  return value?.split(',').map((word) => word.trim());
}

/** All elements in their order; undefined for a text beyond the limits, or with a document type. */
function elementsOf(text: string): readonly Element[] | undefined {
  if (text.length > text_chars_max) return undefined;
  const elements: Element[] = [];
  let depth = 0;
  for (let begin = text.indexOf('<'); begin >= 0; begin = text.indexOf('<', begin + 1)) {
    const end = text.indexOf('>', begin);
    if (end < 0 || text[begin + 1] === '!') return undefined;
    const tag = text.slice(begin + 1, end);
    if (tag.startsWith('?')) continue;
    if (tag.startsWith('/')) {
      depth -= 1;
      if (depth < 0) return undefined;
      continue;
    }
    if (depth >= depth_max || elements.length >= elements_max) return undefined;
    elements.push({ name: tag.split(/[\s/]/u, 1)[0] ?? '', depth, text: valueAt(text, end + 1) });
    if (!tag.endsWith('/')) depth += 1;
  }
  return elements;
}

function valueAt(text: string, begin: number): string {
  const end = text.indexOf('<', begin);
  return text.slice(begin, Math.min(end < 0 ? text.length : end, begin + value_chars_max)).trim();
}

export interface PushParts {
  readonly host: Pick<Host, 'log' | 'signal'>;
  readonly camera: HostOptions;
  /** Where the device answers over HTTP: a name may lead elsewhere by now. */
  readonly place: Pick<DeviceName, 'address'>;
  /** Other devices are configured at the host of this one. */
  readonly is_host_shared: boolean;
  readonly limits: Limits;
  readonly memory: Memory;
  /** Of the logins over HTTP: what they must not try now is not tried here. */
  readonly guard: LoginGuard;
  readonly contact: Contact;
  readonly onReports: (reports: readonly Reported[]) => void;
  /** Its state has changed. */
  readonly onState: () => void;
}

export class Push {
  readonly #parts: PushParts;
  /**
   * Of the login for events: a device that never permits it is asked once an hour at most, over starts of the daemon too, so
   * that both logins together lock no account. Its refusals do not delay the login over HTTP, which the device accepts.
   */
  readonly #own_guard: LoginGuard;
  #port: number | undefined;
  #off = '';
  #isReporting = false;
  #state: SessionState = { state: 'starting' };
  #next_try_ms = 0;

  constructor(parts: PushParts) {
    this.#parts = parts;
    const { memory, limits } = parts;
    this.#own_guard = new LoginGuard({
      memory: {
        get facts() {
          return { refused: memory.facts.push_refused };
        },
        change: async ({ refused }) => memory.change({ push_refused: refused }),
      },
      limits: { may_pass_ms: [], refused_ms: limits.push_refused_ms },
    });
  }

  /** Whether events arrive by themselves now: one has arrived on this connection, and no poll has found another first. */
  get isReporting(): boolean {
    return this.#isReporting;
  }

  /** A poll found a detection that was not reported. */
  distrust(): void {
    this.#isReporting = false;
  }

  /** How events come, for the status; empty before the first attempt. */
  get status(): string {
    if (this.#off !== '') return texts.push_off(this.#off, '');
    if (this.#state.state === 'up') return texts.push_live;
    if (!('reason' in this.#state)) return '';
    const next = new Date(this.#next_try_ms).toISOString().replace(/\.\d+/u, '');
    return texts.push_off(this.#state.reason, texts.push_next(next));
  }

  /** The host was described: decides whether and where it is tried. */
  describe({ push_port, isRecorder, abilities }: HostFacts): void {
    const { camera, place, is_host_shared } = this.#parts;
    const isOnBattery = !isRecorder && abilities.ofChannel(0).hasBattery;
    this.#off = isOnBattery
      ? texts.push_battery
      : whyOff({ ...camera, host: place.address }, { is_host_shared });
    // A device may name its own ports, and none of this machine.
    this.#port = this.#off === '' ? (camera.push_port ?? push_port) : undefined;
  }

  /** Runs until the host's signal aborts. */
  async serve(): Promise<void> {
    const { host, limits, camera } = this.#parts;
    if (camera.push === 'never') return;
    await serveDevice({
      signal: host.signal,
      limits: { ...limits, ...limits.push_retry },
      run: async (signal, onUp) => this.#run(signal, onUp),
      onState: (state) => this.#take(state),
    });
  }

  async #run(signal: AbortSignal, onUp: () => void): Promise<void> {
    const { camera, place, limits, contact, guard, onReports } = this.#parts;
    // Only a host that accepts the login over HTTP is asked.
    await contact.until(({ isUp }) => isUp && this.#port !== undefined, signal);
    if (signal.aborted || this.#port === undefined) return;
    const password = await readPassword(camera.password_file);
    const { username } = camera;
    const credentials = credentialsHash(username, password);
    this.#own_guard.admit(credentials);
    try {
      guard.admit(credentials);
    } catch (error) {
      throw new RetryLater(messageOf(error), limits.push_retry.retry_first_ms);
    }
    try {
      const receive = (reports: readonly Reported[]): void => {
        if (reports.length > 0) this.#isReporting = true;
        onReports(reports);
      };
      await receivePush({
        host: place.address,
        port: this.#port,
        username,
        password,
        limits,
        signal,
        onUp,
        onReports: receive,
      });
    } catch (error) {
      if (!(error instanceof PushRefused)) throw error;
      throw await this.#own_guard.refuse(credentials, error.message);
    }
  }

  #take(state: SessionState): void {
    const { host, camera, onState } = this.#parts;
    const wasSame = 'reason' in state && 'reason' in this.#state && state.reason === this.#state.reason;
    this.#isReporting = false;
    this.#state = state;
    if (state.state === 'up') host.log.info({ host: camera.name }, texts.push_started);
    if ('reason' in state) {
      this.#next_try_ms = Date.now() + state.retry_ms;
      // It is no fault: many models have no such port.
      if (!wasSame)
        host.log.info(
          { host: camera.name, reason: state.reason, retry_ms: state.retry_ms },
          texts.push_unavailable,
        );
    }
    onState();
  }
}

/** Why the options allow no attempt; empty when they do. */
export function whyOff(
  { host, push, push_port, certificate_sha256 }: HostOptions,
  { is_host_shared }: { readonly is_host_shared: boolean },
): string {
  if (push === 'auto' && certificate_sha256 !== undefined) return texts.push_certificate;
  if (push_port === undefined && isOwnHost(host)) return texts.push_own_host;
  // A router may forward the reported port to another device, whose events would be published as those of this one.
  if (push_port === undefined && is_host_shared) return texts.push_shared_host;
  return '';
}
