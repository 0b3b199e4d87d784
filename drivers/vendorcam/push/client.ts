/** One connection to the vendor's own port: logs in, subscribes to alarms, and receives them until it is lost. */
import { connect, type Socket } from 'node:net';
import { unreachable } from '../../../src/toolkit/device/pinned-http.ts';
import { DeviceRejected, DeviceUnreachable } from '../../../src/platform/errors.ts';
import { every, deadline } from '../../../src/platform/time.ts';
import type { Limits } from '../limits.ts';
import { texts } from '../texts.ts';
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
import type { Reported } from '../channels/alarms.ts';
import { aiType } from '../../../src/contract/feeds.ts';

export interface PushConnection {
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
export class PushRefused extends DeviceRejected {}

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
