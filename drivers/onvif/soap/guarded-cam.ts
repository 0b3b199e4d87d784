/** npm onvif's camera with its transport and its login replaced by bounded ones; the rest stays in use. */
import { hash, randomBytes } from 'node:crypto';
import onvif from 'onvif';
import { urlHost } from '../../../src/driver/device-address.ts';
import { type Connection, failure, type Reading, type SoapOutcome, type SoapRequest } from './soap-call.ts';
import { agentFor, type Answered, type Exchange, exchange } from './transport.ts';
import { cameraTime } from './camera-clock.ts';
import { digestChallenges } from './challenges.ts';
import type { Destination } from './destination.ts';
import { digestLogin } from './digest-login.ts';
import { replyText } from './reply-text.ts';
import { escapeXml, find, reply_bytes_max, textAt, type XmlNode } from './xml.ts';
import { texts } from '../texts.ts';

declare module 'onvif' {
  // Members missing in its declarations.
  interface Cam {
    _envelopeHeader(open: boolean): string;
    _envelopeFooter(): string;
  }
}

/** As the library writes it elsewhere: simple devices search for exactly this text. */
const body_start =
  '<s:Body xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xmlns:xsd="http://www.w3.org/2001/XMLSchema">';
/** Reads a reply; never rejects. */
export type ReadReply = (xml: string, limit: Limit) => Promise<Reading>;

/** Of one operation. */
export interface Limit {
  /** Aborts at the deadline of the answer that is awaited. */
  readonly signal: AbortSignal;
  /** The camera has answered; the next answer has as much time again. */
  readonly onAnswer: () => void;
  /** Its answer waits here until it is read. That is no fault of the camera, and the answer has time for it. */
  readonly onQueued: () => void;
}

/** Login state of one camera: clock offset, digest nonce. Requests may overlap. */
export class GuardedCam extends onvif.Cam {
  readonly #connection: Connection;
  readonly #agent;
  readonly #destination: Destination;
  readonly #readReply: ReadReply;
  #hasClock = false;
  #challenges: readonly string[] = [];
  /** Requests with the nonce of these challenges. */
  #count = 0;
  /** From the header `Date` of the last answer to the monotonic time. */
  #header_shift: number | undefined;

  constructor(connection: Connection, destination: Destination, readReply: ReadReply) {
    const { host, port, path, username, password } = connection;
    super({
      hostname: host,
      port,
      path,
      autoconnect: false,
      ...(username === undefined ? {} : { username, password: password ?? '' }),
    });
    this.#connection = connection;
    this.#agent = agentFor(connection);
    this.#destination = destination;
    this.#readReply = readReply;
  }

  /** One operation. Asks the camera for its time first, and once more when a login was refused: clocks jump. */
  async perform(request: SoapRequest, limit: Limit): Promise<SoapOutcome> {
    const isStamped = request.login === 'ws_security' && this.#connection.username !== undefined;
    const isFresh = !this.#hasClock;
    if (isStamped && isFresh) await this.#readClock(limit);
    const first = await this.#once(request, limit);
    // The login did not fail by a clock that was read for this call: the password is not tried a second time.
    if (!isStamped || isFresh || first.kind !== 'fault' || first.code !== 'NotAuthorized') return first;
    await this.#readClock(limit);
    return this.#once(request, limit);
  }

  /** The password of WS-Security is UTF-8 (UsernameToken Profile 1.1, section 3.1); the library hashes Latin-1. */
  _passwordDigest(): { readonly passdigest: string; readonly nonce: string; readonly timestamp: string } {
    const timestamp = new Date(performance.now() + (this.timeShift ?? performance.timeOrigin)).toISOString();
    const nonce = randomBytes(16);
    const hashed = Buffer.concat([nonce, Buffer.from(`${timestamp}${this.password ?? ''}`, 'utf8')]);
    return { passdigest: hash('sha1', hashed, 'base64'), nonce: nonce.toString('base64'), timestamp };
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
    const isEmpty = text.trim() === '';
    const reading = isEmpty ? failure('malformed', texts.reply_empty) : await this.#readReply(text, limit);
    return outcomeOf({ ...posted, text }, reading, request.raw === true);
  }

  /** The library does not escape the user name that it writes into the header, yet digest needs it as it is. */
  #envelope({ headers, body, login }: SoapRequest): string {
    const name = this.username;
    if (name !== undefined) this.username = escapeXml(name);
    this.useWSSecurity = login === 'ws_security';
    try {
      const start =
        headers === undefined
          ? this._envelopeHeader(false)
          : `${this._envelopeHeader(true)}${headers}</s:Header>${body_start}`;
      return `${start}${body}${this._envelopeFooter()}`;
    } finally {
      if (name !== undefined) this.username = name;
    }
  }

  async #post(
    what: Pick<SoapRequest, 'url' | 'action' | 'login'> & { readonly envelope: string },
    limit: Limit,
  ): Promise<Answered> {
    const { host, port, path, secure } = this.#connection;
    const url = new URL(what.url ?? `${secure ? 'https' : 'http'}://${urlHost(host)}:${port}${path}`);
    const type = `application/soap+xml; charset=utf-8; action="${what.action}"`;
    const headers = { 'Content-Type': type };
    const request = {
      url,
      method: 'POST',
      headers,
      body: what.envelope,
      bytes_max: reply_bytes_max,
    } as const;
    return this.#exchange(request, limit, what.login !== 'none');
  }

  /** Fetches a file of the camera, with HTTP digest where it asks for a login. */
  async fetch(url: string, bytes_max: number, limit: Limit): Promise<Answered> {
    const request = { url: new URL(url), method: 'GET', headers: {}, body: '', bytes_max } as const;
    return this.#exchange(request, limit, true);
  }

  /** Answers a challenge of HTTP digest once. */
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
    const answered = await send();
    const isChallenged = answered.status === 401 && hasLogin;
    return isChallenged && this.#learn(answered.challenges, what) ? send() : answered;
  }

  /** Remembers the challenges; false when none can be met. A nonce is used until the camera requests another. */
  #learn(challenges: readonly string[], what: Pick<Exchange, 'url' | 'method' | 'body'>): boolean {
    this.#challenges = digestChallenges(challenges);
    const canMeet = this.#authorization(what) !== undefined;
    this.#count = 0;
    return canMeet;
  }

  #authorization({ url, method, body }: Pick<Exchange, 'url' | 'method' | 'body'>): string | undefined {
    const { username, password = '' } = this.#connection;
    if (this.#challenges.length === 0 || username === undefined) return undefined;
    const path = `${url.pathname}${url.search}`;
    this.#count += 1;
    const cnonce = randomBytes(8).toString('hex');
    const request = { method, path, body, username, password, count: this.#count, cnonce };
    return digestLogin(this.#challenges, request);
  }

  /** WS-Security is stamped with the camera's time (ONVIF Core, section 5.12.2.1), which needs no login. */
  async #readClock(limit: Limit): Promise<void> {
    const body = '<GetSystemDateAndTime xmlns="http://www.onvif.org/ver10/device/wsdl"/>';
    const action = 'http://www.onvif.org/ver10/device/wsdl/GetSystemDateAndTime';
    const request = { body, action, login: 'none' } as const;
    const outcome = await this.#once(request, limit);
    this.#hasClock = true;
    const time_ms = outcome.kind === 'reply' ? cameraTime(outcome.body) : undefined;
    // Some want a login for their time, and show it in each answer of HTTP. What shows none is assumed to have the gateway's.
    this.timeShift =
      time_ms === undefined
        ? (this.#header_shift ?? Date.now() - performance.now())
        : time_ms - performance.now();
  }
}

function outcomeOf(
  { status, text, local_address }: Answered & { readonly text: string },
  reading: Reading,
  raw: boolean,
): SoapOutcome {
  // A login page or an empty answer with an error status is reported by its status.
  const isUnread = reading.kind === 'failure' && (reading.why !== 'malformed' || status < 400);
  if (isUnread) return reading;
  const body = reading.kind === 'read' ? reading.body : undefined;
  const fault = find(body, 'fault');
  if (fault) return { kind: 'fault', status, ...faultOf(fault) };
  if (status === 401 || status === 403) {
    return { kind: 'fault', status, code: 'NotAuthorized', reason: texts.http_status(status) };
  }
  if (!body || status >= 400) {
    return { kind: 'fault', status, code: `HTTP${status}`, reason: `HTTP status ${status}` };
  }
  return { kind: 'reply', body, local_address, ...(raw ? { xml: text } : {}) };
}

/** A locked account is refused for its password: each further attempt keeps it locked. */
const login_words =
  /not ?authori[sz]ed|unauthori[sz]ed|authentication fail|\b(?:account|user)\b[^.]{0,40}\block(?:ed)?\b/iu;

/** SOAP 1.2, section 5.4: subcodes nest, the innermost is the most specific. */
function faultOf(fault: XmlNode): { readonly code: string; readonly reason: string } {
  let at = find(fault, 'code');
  let code = textAt(at, 'value') ?? textAt(fault, 'faultcode') ?? 'unknown';
  while ((at = find(at, 'subcode'))) code = textAt(at, 'value') ?? code;
  const whole = textAt(fault, 'reason', 'text') ?? textAt(fault, 'faultstring') ?? '';
  const text = whole.slice(0, reason_chars_max);
  const plain = code.slice(code.indexOf(':') + 1);
  const isLogin = login_words.test(text);
  const known = isLogin || /^(?:FailedAuthentication|InvalidSecurity)/u.test(plain) ? 'NotAuthorized' : plain;
  return { code: known, reason: withDetail(text, fault).slice(0, reason_chars_max) };
}
const reason_chars_max = 300;
const details_max = 16;

/** Devices often put the real cause into the detail (SOAP 1.2, section 5.4.5), in vendor-specific elements. */
function withDetail(reason: string, fault: XmlNode): string {
  const found = textsIn(find(fault, 'detail')).slice(0, details_max);
  const texts = found.filter((text) => !reason.includes(text));
  const detail = [...new Set(texts)].join(', ');
  return [reason, detail].filter((part) => part !== '').join(': ');
}

function textsIn(node: XmlNode | undefined): readonly string[] {
  if (!node) return [];
  const own = node.text === '' ? [] : [node.text];
  return [...own, ...Object.values(node.children).flatMap((each) => each.flatMap(textsIn))];
}
