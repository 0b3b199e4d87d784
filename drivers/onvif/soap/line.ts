/** The line to one camera: its requests, each with a deadline, its login and its clock. */
import { randomBytes } from 'node:crypto';
import { isIP } from 'node:net';
import { connectionFault } from '../../../src/toolkit/device/connection-fault.ts';
import type { DeviceName } from '../../../src/toolkit/device/device-name.ts';
import { urlHost } from '../../../src/toolkit/driver/device-address.ts';
import { messageOf } from '../../../src/platform/errors.ts';
import { deadline } from '../../../src/platform/time.ts';
import { canMeet, digestChallenges, digestLogin, offersBasic } from './digest-login.ts';
import { outcomeOf, reason_chars_max, type SoapVersion, writeEnvelope } from './envelope.ts';
import {
  replyText,
  agentFor,
  type Answered,
  CertificateRefused,
  type Exchange,
  exchange,
  ReplyRefused,
} from './transport.ts';
import {
  call_deadline_ms,
  type Connection,
  failure,
  type Failure,
  type FailureKind,
  isRefusedLogin,
  type LoginSigns,
  type Soap,
  type SoapOutcome,
  type SoapRequest,
} from './soap.ts';
import { reply_bytes_max, everywhere, textAt, type XmlNode } from './xml.ts';
import { texts } from '../texts.ts';

/** Calls of one camera that wait for an answer. */
const calls_max = 32;

/** Opens the line without state of an earlier login, clock or nonce. It closes when `signal` aborts. */
export function openLine(connection: Connection, signal: AbortSignal): Soap {
  const calls = new Set<AbortController>();
  let isClosed = signal.aborted;
  const destination = new Destination(connection.host, connection.name);
  const client = new SoapClient(connection, destination);

  /** Each answer of the camera has `ms`: one operation may need a reading of its clock, and a challenge. */
  const limited = async <T>(
    ms: number,
    work: (limit: Limit) => Promise<T>,
    wanted?: AbortSignal,
  ): Promise<T | Failure> => {
    if (wanted?.aborted) return failure('interrupted', texts.not_wanted);
    if (isClosed) return failure('interrupted', texts.connection_closed);
    if (calls.size >= calls_max) return failure('interrupted', texts.queue_full);
    const call = new AbortController();
    const { cancel, ...limit } = limitOf(call, ms);
    calls.add(call);
    const end = (): void => call.abort();
    wanted?.addEventListener('abort', end, { once: true });
    try {
      return await work(limit);
    } catch (error) {
      if (wanted?.aborted) return failure('interrupted', texts.not_wanted);
      if (isClosed) return failure('interrupted', texts.connection_closed);
      if (call.signal.aborted) return failure('deadline', texts.answer_late(ms / 1_000));
      return failure(kindOf(error), reasonOf(error));
    } finally {
      cancel();
      wanted?.removeEventListener('abort', end);
      calls.delete(call);
    }
  };
  const close = (): void => {
    isClosed = true;
    signal.removeEventListener('abort', close);
    for (const call of calls) call.abort();
  };
  signal.addEventListener('abort', close, { once: true });

  let files: SoapClient | undefined;
  const soap: Soap = {
    get connection() {
      return { ...connection, peer_address: destination.peer };
    },
    login: 'ws_security',
    call: async ({ deadline_ms = call_deadline_ms, signal: wanted, ...operation }) => {
      const request = { ...operation, login: soap.login };
      return limited(deadline_ms, async (limit) => client.perform(request, limit), wanted);
    },
    fetch: async (url, { deadline_ms, bytes_max }) =>
      limited(deadline_ms, async (limit) => {
        // A separate login: the web server of a camera may ask for another one than its services.
        files ??= new SoapClient(connection, destination);
        return files.fetch(url, bytes_max, limit);
      }),
    close,
  };
  return soap;
}

/** Of a call whose answers have `ms` each. */
function limitOf(call: AbortController, ms: number): Limit & { readonly cancel: () => void } {
  let cancel = deadline(ms, () => call.abort());
  const allow = (more_ms: number): void => {
    cancel();
    cancel = deadline(more_ms, () => call.abort());
  };
  return {
    signal: call.signal,
    onAnswer: () => allow(ms),
    cancel: () => cancel(),
  };
}

function kindOf(error: unknown): FailureKind {
  if (error instanceof CertificateRefused) return 'certificate';
  return error instanceof ReplyRefused ? 'malformed' : 'unreachable';
}

function reasonOf(error: unknown): string {
  const isOwn = error instanceof CertificateRefused || error instanceof ReplyRefused;
  return (isOwn ? undefined : connectionFault(error, texts.refused_remedy)) ?? messageOf(error);
}

/** Of one operation. */
interface Limit {
  /** Aborts at the deadline of the answer that is awaited. */
  readonly signal: AbortSignal;
  /** The camera has answered; the next answer has as much time again. */
  readonly onAnswer: () => void;
}

/** The resolution of GetSystemDateAndTime is a second; the narrowest window of a camera that was seen is five (home-assistant/core#121952). */
export const clock_step_ms = 2_000;

/** Sends requests, with the login state of one camera: clock offset, digest nonce, version of SOAP. Requests may overlap. */
class SoapClient {
  readonly #connection: Connection;
  readonly #agent;
  readonly #destination: Destination;
  #hasClock = false;
  /** From the monotonic time to the clock of the camera. */
  #clock_shift = performance.timeOrigin;
  #challenges: readonly string[] = [];
  #isBasic = false;
  /** Requests with the nonce of these challenges. */
  #count = 0;
  #isHttpRefused = false;
  #isBasicAlone = false;
  /** From the header `Date` of the last answer to the monotonic time. */
  #header_shift: number | undefined;
  #version: SoapVersion = '1.2';
  #isVersionKnown = false;

  constructor(connection: Connection, destination: Destination) {
    this.#connection = connection;
    this.#agent = agentFor(connection);
    this.#destination = destination;
  }

  /** One operation. Asks the camera for its time first, and once more when a login was refused: clocks jump. */
  async perform(request: SoapRequest, limit: Limit): Promise<SoapOutcome> {
    const isStamped = request.login === 'ws_security' && this.#connection.username !== undefined;
    const isFresh = !this.#hasClock;
    if (isStamped && isFresh) await this.#readClock(limit);
    let outcome = await this.#ask(request, limit);
    // Where the clock did not cause the refusal, the password is not tried a second time.
    if (isRefusedLogin(outcome) && isStamped && !isFresh && (await this.#readClock(limit))) {
      outcome = await this.#ask(request, limit);
    }
    return isRefusedLogin(outcome) ? { ...outcome, signs: this.#signs() } : outcome;
  }

  #signs(): LoginSigns {
    const ahead_ms = performance.now() + this.#clock_shift - Date.now();
    return {
      clock_ahead_ms: this.#hasClock ? Math.round(ahead_ms) : 0,
      isHttpRefused: this.#isHttpRefused,
      isBasicAlone: this.#isBasicAlone,
    };
  }

  /** Until the camera has understood a request, one that it did not understand is repeated in SOAP 1.1. */
  async #ask(request: SoapRequest, limit: Limit): Promise<SoapOutcome> {
    const outcome = await this.#once(request, limit);
    if (this.#isVersionKnown || !isOtherVersion(outcome, request)) {
      this.#isVersionKnown ||= outcome.kind !== 'failure';
      return outcome;
    }
    this.#version = '1.1';
    const older = await this.#once(request, limit);
    if (older.kind === 'reply' || isRefusedLogin(older)) {
      this.#isVersionKnown = true;
      return older;
    }
    this.#version = '1.2';
    return outcome;
  }

  async #once(request: SoapRequest, limit: Limit): Promise<SoapOutcome> {
    const envelope = this.#envelope(request);
    const posted = await this.#post({ ...request, envelope }, limit);
    if (posted.date_ms !== undefined) this.#header_shift = posted.date_ms - performance.now();
    if (posted.location !== undefined && posted.status >= 300 && posted.status < 400) {
      return failure(
        'malformed',
        texts.redirected(posted.status, posted.location.slice(0, reason_chars_max)),
      );
    }
    const text = replyText(posted.bytes, posted.type);
    return outcomeOf({ ...posted, text }, request.raw === true);
  }

  #envelope({ headers, body, login }: SoapRequest): string {
    const { username = '', password = '' } = this.#connection;
    const isStamped = login === 'ws_security' || login === 'gateway_clock';
    const now_ms = login === 'gateway_clock' ? Date.now() : performance.now() + this.#clock_shift;
    const stamp =
      isStamped && username !== '' && password !== '' ? { username, password, now_ms } : undefined;
    return writeEnvelope(body, headers, stamp, this.#version);
  }

  async #post(
    what: Pick<SoapRequest, 'url' | 'action' | 'login'> & { readonly envelope: string },
    limit: Limit,
  ): Promise<Answered> {
    const { host, port, path, secure } = this.#connection;
    const url = new URL(what.url ?? `${secure ? 'https' : 'http'}://${urlHost(host)}:${port}${path}`);
    const headers: Record<string, string> =
      this.#version === '1.2'
        ? { 'Content-Type': `application/soap+xml; charset=utf-8; action="${what.action}"` }
        : { 'Content-Type': 'text/xml; charset=utf-8', SOAPAction: `"${what.action}"` };
    const request = {
      url,
      method: 'POST',
      headers,
      body: what.envelope,
      bytes_max: reply_bytes_max,
    } as const;
    return this.#exchange(request, limit, what.login !== 'none');
  }

  /** Fetches a file of the camera, with the login of HTTP that it asks for. */
  async fetch(url: string, bytes_max: number, limit: Limit): Promise<Answered> {
    const request = { url: new URL(url), method: 'GET', headers: {}, body: '', bytes_max } as const;
    return this.#exchange(request, limit, true);
  }

  /** Answers a challenge of HTTP once. */
  async #exchange(
    what: Omit<Exchange, 'agent' | 'address' | 'lookup' | 'fingerprint' | 'signal'>,
    { signal, onAnswer }: Pick<Limit, 'signal' | 'onAnswer'>,
    hasLogin: boolean,
  ): Promise<Answered> {
    const { fingerprint } = this.#connection;
    const send = async (): Promise<Answered> => {
      const login = hasLogin ? this.#authorization(what) : undefined;
      const headers = { ...what.headers, ...(login === undefined ? {} : { Authorization: login }) };
      const { address, lookup } = this.#destination;
      const way = { agent: this.#agent, address, lookup, fingerprint };
      const answered = await exchange({ ...what, ...way, headers, signal });
      this.#destination.answered(answered.peer_address);
      onAnswer();
      return answered;
    };
    let answered = await send();
    if (answered.status !== 401 || !hasLogin || !this.#learn(answered.challenges)) return answered;
    answered = await send();
    this.#isHttpRefused = answered.status === 401;
    if (this.#isHttpRefused) this.#forgetChallenges();
    return answered;
  }

  /** Remembers the challenges; false when none can be met. A nonce is used until the camera requests another. */
  #learn(headers: readonly string[]): boolean {
    const challenges = digestChallenges(headers).filter(canMeet);
    const isBasic = challenges.length === 0 && offersBasic(headers);
    const isRepeated = isBasic && this.#isBasic;
    this.#forgetChallenges();
    this.#isBasicAlone = isBasic && !this.#connection.secure;
    this.#isHttpRefused = isRepeated;
    this.#challenges = challenges;
    // It sends the password itself.
    this.#isBasic = isBasic && this.#connection.secure && !isRepeated;
    return this.#connection.username !== undefined && (this.#isBasic || challenges.length > 0);
  }

  #forgetChallenges(): void {
    this.#challenges = [];
    this.#isBasic = false;
    this.#count = 0;
  }

  #authorization({ url, method, body }: Pick<Exchange, 'url' | 'method' | 'body'>): string | undefined {
    const { username, password = '' } = this.#connection;
    if (username === undefined) return undefined;
    if (this.#isBasic) return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
    if (this.#challenges.length === 0) return undefined;
    const path = `${url.pathname}${url.search}`;
    this.#count += 1;
    const cnonce = randomBytes(8).toString('hex');
    const request = { method, path, body, username, password, count: this.#count, cnonce };
    return digestLogin(this.#challenges, request);
  }

  /** WS-Security is stamped with the camera's time (ONVIF Core, section 5.12.2.1), which needs no login. Resolves with whether its clock has jumped. */
  async #readClock(limit: Limit): Promise<boolean> {
    const body = '<GetSystemDateAndTime xmlns="http://www.onvif.org/ver10/device/wsdl"/>';
    const action = 'http://www.onvif.org/ver10/device/wsdl/GetSystemDateAndTime';
    const request = { body, action, login: 'none' } as const;
    const outcome = await this.#ask(request, limit);
    this.#hasClock = true;
    const time_ms = outcome.kind === 'reply' ? cameraTime(outcome.body) : undefined;
    const before = this.#clock_shift;
    // Some want a login for their time, and show it in each answer of HTTP. What shows none is assumed to have the gateway's.
    this.#clock_shift =
      time_ms === undefined
        ? (this.#header_shift ?? Date.now() - performance.now())
        : time_ms - performance.now();
    return Math.abs(this.#clock_shift - before) >= clock_step_ms;
  }
}

/**
 * Whether the camera may understand SOAP 1.1 alone: it answers with nothing (OpenIPC/viewer#65), refuses the type of the content, or names the
 * version; also with any fault that names no cause, where that cannot be the refusal of a login, which is not sent twice.
 */
function isOtherVersion(outcome: SoapOutcome, { login }: SoapRequest): boolean {
  if (outcome.kind === 'failure') return outcome.reason === texts.reply_empty;
  if (outcome.kind === 'reply') return false;
  const { code, reason } = outcome;
  if (code === 'HTTP415' || code === 'VersionMismatch' || /version ?mismatch/iu.test(reason)) return true;
  return login === 'none' && /^(?:HTTP400|HTTP5\d\d|Client|Server|Sender|Receiver|unknown)$/u.test(code);
}

/**
 * Where the requests of one connection go. A host name is resolved once for each connection: it may lead to another camera later, which would be mistaken for the
 * identified camera.
 */
class Destination {
  readonly #name: Connection['name'];
  readonly #isName: boolean;
  /** Undefined for a name that was not contacted yet. */
  address: string | undefined;
  /** IP address of the camera, once it has answered. */
  peer: string | undefined;

  /** @param host As configured; an IPv6 address may have a zone. */
  constructor(host: string, name: Connection['name']) {
    this.#name = name;
    this.#isName = isIP(host) === 0;
    this.address = this.#isName ? undefined : host;
  }

  /** For the first contact. */
  get lookup(): DeviceName['lookup'] | undefined {
    return this.#name?.lookup;
  }

  /** The camera answered from this address. */
  answered(address: string | undefined): void {
    this.peer = address ?? this.peer;
    this.#name?.reached(address);
    if (this.#isName) this.address ??= address;
  }
}

// Reads the time of a camera from GetSystemDateAndTimeResponse (ONVIF Core, section 8.1). Pure.

const ms_per_min = 60_000;

/** Milliseconds since 1970; undefined where it is not reported. Some cameras report their local time alone. */
export function cameraTime(body: XmlNode): number | undefined {
  const utc_ms = timeOf(everywhere(body, 'utcDateTime')[0]);
  if (utc_ms !== undefined) return utc_ms;
  const local_ms = timeOf(everywhere(body, 'localDateTime')[0]);
  const zone = everywhere(body, 'tz')[0]?.text ?? '';
  return local_ms === undefined ? undefined : local_ms + minutesWest(zone) * ms_per_min;
}

/** Of the standard time of a zone in POSIX form: `EST5EDT,M3.2.0,M11.1.0`, `CST-8`, `<+0530>-5:30`. */
function minutesWest(zone: string): number {
  const [, sign, hours = '0', minutes = '0'] =
    /^(?:<[^>]{1,16}>|[a-z]{1,16})([+-]?)(\d{1,2})(?::(\d{1,2}))?/iu.exec(zone) ?? [];
  const total = Number(hours) * 60 + Number(minutes);
  return sign === '-' ? -total : total;
}

function timeOf(node: XmlNode | undefined): number | undefined {
  const part = (...path: readonly string[]): number => Number(textAt(node, ...path) ?? Number.NaN);
  const [year, month, day] = [part('date', 'year'), part('date', 'month'), part('date', 'day')];
  const time_ms = Date.UTC(
    year,
    month - 1,
    day,
    part('time', 'hour'),
    part('time', 'minute'),
    part('time', 'second'),
  );
  return Number.isFinite(time_ms) ? time_ms : undefined;
}
