/** A simulated ONVIF camera on the loopback, for trials and as the base of the tests' fake: SOAP over HTTP with WS-Security. */
import { createHash, randomBytes } from 'node:crypto';
import { type IncomingMessage, request, type ServerResponse } from 'node:http';
import { samplePicture } from '../../../src/toolkit/device/pictures/sample-picture.ts';
import { SimServer } from '../../../src/toolkit/device/sim-server.ts';
import { every, sleep } from '../../../src/platform/time.ts';
import { SimMotor } from './motor.ts';
import { envelope, fault, type Soap, soapOperations } from './services.ts';
import type { SimRequest, SimSettings } from './settings.ts';

interface Subscriber {
  readonly queue: string[];
  /** Where it is called; undefined: it pulls. */
  readonly consumer: string | undefined;
  wake: (() => void) | undefined;
}

const queue_max = 1_000;
const dialect = 'http://www.onvif.org/ver10/tev/topicExpression/ConcreteSet';
const unknown = { fault: 'wsrf-rw:ResourceUnknownFault', reason: 'no such subscription' };

export class SimEvents {
  /** How long a subscription lives unless it is renewed. */
  lifetime_ms = 180_000;
  /** The camera ignores the time that a pull may wait, and answers at once. */
  isHasty = false;
  /** Spells its times without a zone, as some do. */
  spellTime = (at: Date): string => at.toISOString();
  /** Closes the connection of a pull that has been idle for this time, as a Tapo does after 10 s. */
  idle_max_ms = Number.POSITIVE_INFINITY;
  /** Answers at the end of the time that a pull may wait alone, whatever happens meanwhile. */
  holdsEvents = false;
  /** Serves so many pull points at once. */
  pull_points_max = Number.POSITIVE_INFINITY;
  /** Reported address of subscriptions; the camera itself when undefined. `http://`: it has no host. */
  foreign_base: string | undefined;
  readonly operations: Readonly<Record<string, Soap>>;
  readonly #base: () => string;
  readonly #settings: SimSettings;
  readonly #subscribers = new Map<string, Subscriber>();
  /** How each property is reported, by topic and source. */
  readonly #properties = new Map<string, (operation: string) => string>();
  #last = 0;

  constructor(base: () => string, settings: SimSettings) {
    this.#base = base;
    this.#settings = settings;
    this.operations = {
      CreatePullPointSubscription: () => this.#create(),
      Subscribe: ({ body }) => this.#subscribe(body),
      PullMessages: async (asked, response) => this.#pull(asked, response),
      SetSynchronizationPoint: (asked) => this.#synchronise(asked),
      Renew: (asked) =>
        this.#find(asked) ? `<wsnt:RenewResponse>${this.#times()}</wsnt:RenewResponse>` : unknown,
      Unsubscribe: (asked) => this.#unsubscribe(asked),
    };
  }

  /** Subscriptions that live now. */
  get size(): number {
    return this.#subscribers.size;
  }

  /** Changes a state; sent to all subscriptions, and again on request. */
  set(topic: string, item: string, value: string, source = 'VS0'): void {
    const utc = this.holdsEvents
      ? new Date(Date.now() + this.#settings.skew_ms).toISOString()
      : '2001-01-01T00:00:00Z';
    const make = (operation: string): string =>
      `<wsnt:NotificationMessage><wsnt:Topic Dialect="${dialect}">${topic}</wsnt:Topic><wsnt:Message><tt:Message UtcTime="${utc}" PropertyOperation="${operation}">` +
      `<tt:Source><tt:SimpleItem Name="VideoSourceToken" Value="${source}"/></tt:Source><tt:Data><tt:SimpleItem Name="${item}" Value="${value}"/></tt:Data></tt:Message></wsnt:Message></wsnt:NotificationMessage>`;
    this.#properties.set(`${topic} ${source}`, make);
    this.send(make('Changed'));
  }

  /** Sends a notification as it stands. */
  send(notification: string): void {
    for (const subscriber of this.#subscribers.values()) {
      const { consumer, queue } = subscriber;
      if (consumer === undefined) {
        if (queue.length < queue_max) queue.push(notification);
        subscriber.wake?.();
      } else call(consumer, `<wsnt:Notify>${notification}</wsnt:Notify>`, this.#settings.prefix);
    }
  }

  forgetAll(): void {
    for (const { wake } of this.#subscribers.values()) wake?.();
    this.#subscribers.clear();
    this.#properties.clear();
  }

  #create() {
    const pulled = [...this.#subscribers.values()].filter(({ consumer }) => consumer === undefined);
    if (pulled.length >= this.pull_points_max) {
      return { fault: 'ter:InvalidArgVal', reason: 'Maximum number of pull points reached' };
    }
    const answer = this.#add(undefined, 'tev:SubscriptionReference');
    return `<tev:CreatePullPointSubscriptionResponse>${answer}</tev:CreatePullPointSubscriptionResponse>`;
  }

  #subscribe(body: string) {
    const consumer = /ConsumerReference>.*?Address>([^<]*)</u.exec(body)?.[1];
    // WS-Addressing 1.0, section 3.4: a request that wants a reply has a number.
    if (!/<(?:\w+:)?MessageID>[^<]+</u.test(body)) return { fault: 'ter:ActionFailed' };
    return `<wsnt:SubscribeResponse>${this.#add(consumer, 'wsnt:SubscriptionReference')}</wsnt:SubscribeResponse>`;
  }

  async #pull(asked: SimRequest, response: Parameters<Soap>[1]) {
    const subscriber = this.#find(asked);
    if (!subscriber) return unknown;
    const seconds = Number(/Timeout>PT(\d+)S</u.exec(asked.body)?.[1]);
    if ((subscriber.queue.length === 0 || this.holdsEvents) && !this.isHasty) {
      const waiting = new AbortController();
      subscriber.wake = () => this.holdsEvents || waiting.abort();
      response.on('close', () => waiting.abort());
      await sleep(Math.min(seconds * 1_000, this.idle_max_ms), waiting.signal);
      if (seconds * 1_000 > this.idle_max_ms && !waiting.signal.aborted) response.destroy();
    }
    if (response.destroyed) return undefined;
    const times = this.#times().replaceAll('wsnt:', 'tev:');
    return `<tev:PullMessagesResponse>${times}${subscriber.queue.splice(0).join('')}</tev:PullMessagesResponse>`;
  }

  #synchronise(asked: SimRequest) {
    // Of a media service: a key frame, of which a simulated stream has no other.
    if (/\/media2?$/u.test(asked.path)) return '<trt:SetSynchronizationPointResponse/>';
    if (!this.#find(asked)) return unknown;
    for (const make of this.#properties.values()) this.send(make('Initialized'));
    return '<tev:SetSynchronizationPointResponse/>';
  }

  #unsubscribe(asked: SimRequest) {
    const subscriber = this.#find(asked);
    for (const [id, each] of this.#subscribers) if (each === subscriber) this.#subscribers.delete(id);
    return subscriber ? '<wsnt:UnsubscribeResponse/>' : unknown;
  }

  #add(consumer: string | undefined, element: string): string {
    this.#last += 1;
    const id = String(this.#last);
    this.#subscribers.set(id, { queue: [], consumer, wake: undefined });
    const address = `<wsa:Address>${this.foreign_base ?? this.#base()}/onvif/subscription/${id}?x=1</wsa:Address>`;
    const parameters = `<wsa:ReferenceParameters><axis:SubscriptionId>${id}</axis:SubscriptionId></wsa:ReferenceParameters>`;
    return `<${element}>${address}${parameters}</${element}>${this.#times()}`;
  }

  #find({ path, body }: SimRequest): Subscriber | undefined {
    const id = /subscription\/(\d+)\?x=1$/u.exec(path)?.[1] ?? '';
    // The reference parameter must come back in the header, in its namespace.
    const marked = `<axis:SubscriptionId [^>]*IsReferenceParameter="true"[^>]*>${id}<`;
    return new RegExp(marked, 'u').test(body) ? this.#subscribers.get(id) : undefined;
  }

  #times(): string {
    const now_ms = Date.now() + this.#settings.skew_ms;
    const [now, end] = [now_ms, now_ms + this.lifetime_ms].map((ms) => this.spellTime(new Date(ms)));
    return `<wsnt:CurrentTime>${now}</wsnt:CurrentTime><wsnt:TerminationTime>${end}</wsnt:TerminationTime>`;
  }
}

function call(url: string, body: string, prefix: string): void {
  const sent = request(url, { method: 'POST' }, (response) => response.resume());
  sent.on('error', () => undefined);
  sent.end(envelope(body, prefix));
}

/** How far the time of a login may be off. */
const login_age_max_ms = 10_000;
/** First motion, its interval and its duration. */
const first_visit_ms = 4_000;
const visit_every_ms = 15_000;
const visit_ms = 4_000;
const visit_step_ms = 500;
/** The way to a preset. */
const way_ms = 800;

/** Listens until the signal aborts, and sees motion now and then unless it is quiet. Rejects when the port is taken. */
export async function startSimCamera(
  settings: SimSettings,
  port: number,
  signal: AbortSignal,
): Promise<SimCamera> {
  const camera = new SimCamera(settings);
  camera.motor.way_ms = way_ms;
  await camera.listen(port);
  signal.addEventListener('abort', () => void camera.stop(), { once: true });
  if (settings.isQuiet === true) return camera;
  const first_ms = performance.now() + first_visit_ms;
  let isSeen = false;
  every(visit_step_ms, signal, () => {
    const since_ms = performance.now() - first_ms;
    const isThere = since_ms >= 0 && since_ms % visit_every_ms < visit_ms;
    if (isThere === isSeen) return;
    isSeen = isThere;
    camera.events.set('tns1:VideoSource/MotionAlarm', 'State', String(isThere));
  });
  return camera;
}

type Refusal = (response: ServerResponse) => void;

export class SimCamera extends SimServer {
  readonly settings: SimSettings;
  readonly events: SimEvents;
  /** Of the first video source. */
  readonly motor = new SimMotor();
  /** By source. */
  readonly #motors = new Map<string, SimMotor>();
  readonly switched = new Map<string, string>();
  protected readonly nonce = randomBytes(8).toString('hex');
  readonly #operations: Readonly<Record<string, Soap>>;

  constructor(settings: SimSettings) {
    super();
    this.settings = settings;
    this.events = new SimEvents(() => this.base, settings);
    this.#operations = { ...soapOperations(this), ...this.events.operations };
  }

  motorOf(source: string): SimMotor {
    if (source === '' || source === this.settings.sources?.[0]?.token) return this.motor;
    const motor = this.#motors.get(source) ?? new SimMotor();
    this.#motors.set(source, motor);
    return motor;
  }

  /** Answers one request that has been read. */
  protected async answer(asked: SimRequest, response: ServerResponse): Promise<void> {
    const { prefix } = this.settings;
    // The time needs no login: logins are stamped with it (ONVIF Core, section 5.12.2.1).
    const refusal = asked.operation === 'GetSystemDateAndTime' ? undefined : this.refusal(asked);
    if (refusal !== undefined) return refusal(response);
    if (asked.operation === 'GET') return this.sendFile(asked, response);
    const answer = (await this.#operations[asked.operation]?.(asked, response)) ?? undefined;
    if (response.destroyed || response.writableEnded) return undefined;
    if (answer === undefined) {
      return sendXml(response, 400, fault('ter:ActionNotSupported', `no ${asked.operation}`, prefix));
    }
    if (typeof answer === 'string') return sendXml(response, 200, envelope(answer, prefix));
    return sendXml(response, 400, fault(answer.fault, answer.reason ?? '', prefix));
  }

  /** Its pictures; anything else is not there. */
  protected sendFile({ path }: SimRequest, response: ServerResponse): void {
    const { snapshot = '' } = this.settings;
    if (path !== new URL(snapshot, this.base).href.slice(new URL(snapshot, this.base).origin.length)) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'Content-Type': 'image/jpeg' }).end(samplePicture());
  }

  /** How a request without a good login is answered; undefined when the login is good. */
  protected refusal({ operation, body, path, authorization }: SimRequest): Refusal | undefined {
    if (operation === 'GET') return this.digestRefusal({ authorization, path, body, method: 'GET' });
    return this.isGenuine(body) ? undefined : (response) => this.sendNotAuthorized(response);
  }

  /** HTTP digest (RFC 7616). */
  protected digestRefusal(asked: Omit<DigestRequest, 'username' | 'password'>): Refusal | undefined {
    const { username, password } = this.settings;
    const isKnown = isDigest({ ...asked, username, password });
    return isKnown ? undefined : (response) => this.challenge(response);
  }

  protected challenge(response: ServerResponse): void {
    response.writeHead(401, { 'WWW-Authenticate': challengeOf(this.nonce) }).end();
  }

  protected sendNotAuthorized(response: ServerResponse): void {
    sendXml(response, 400, fault('ter:NotAuthorized', 'Sender not authorized', this.settings.prefix));
  }

  /** UsernameToken Profile 1.1: the digest over nonce, time and password, and a time that is not old. */
  protected isGenuine(body: string): boolean {
    const read = (name: string): string =>
      new RegExp(`<(?:\\w+:)?${name}(?:\\s[^>]*)?>([^<]*)<`, 'u').exec(body)?.[1] ?? '';
    const { username, password, skew_ms } = this.settings;
    const created = read('Created');
    const hash = createHash('sha1')
      .update(Buffer.from(read('Nonce'), 'base64'))
      .update(created);
    const expected = hash.update(password, 'utf8').digest('base64');
    const off_ms = Math.abs(Date.parse(created) - (Date.now() + skew_ms));
    const name = unescapeXml(read('Username'));
    return name === username && read('Password') === expected && off_ms < login_age_max_ms;
  }

  protected override async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    request.setEncoding('utf8');
    request.on('error', () => undefined);
    for await (const chunk of request) body += String(chunk);
    const isFile = request.method === 'GET';
    const operation = isFile ? 'GET' : (/<(?:\w+:)?Body[^>]*>\s*<(?:\w+:)?(\w+)/u.exec(body)?.[1] ?? '');
    const { authorization } = request.headers;
    await this.answer({ operation, path: request.url ?? '', body, authorization }, response);
  }
}

export function sendXml(response: ServerResponse, status: number, xml: string): void {
  response.writeHead(status, { 'Content-Type': 'application/soap+xml; charset=utf-8' }).end(xml);
}

function unescapeXml(text: string): string {
  return text.replaceAll(/&#(\d+);/gu, (_, code: string) => String.fromCodePoint(Number(code)));
}

// HTTP digest as the server side checks it (RFC 7616).

export interface DigestRequest {
  readonly authorization: string | undefined;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly body: string;
  readonly username: string;
  readonly password: string;
}

export function challengeOf(nonce: string): string {
  return `Digest realm="camera", qop="auth, auth-int", nonce="${nonce}"`;
}

export function isDigest({
  authorization = '',
  method,
  path,
  body,
  username,
  password,
}: DigestRequest): boolean {
  const read = (name: string): string => {
    const [, quoted, plain] =
      new RegExp(`(?<![a-z])${name}=(?:"([^"]*)"|([^",\\s]*))`, 'u').exec(authorization) ?? [];
    return quoted ?? plain ?? '';
  };
  const [, name = 'md5', session] = /^(.*?)(-sess)?$/u.exec(read('algorithm').toLowerCase() || 'md5') ?? [];
  const algorithm = name.replace('sha-', 'sha');
  const hash = (...parts: readonly string[]): string =>
    createHash(algorithm).update(parts.join(':')).digest('hex');
  const user = hash(username, read('realm'), password);
  const known = session === undefined ? user : hash(user, read('nonce'), read('cnonce'));
  const quality = read('qop');
  const what = quality === 'auth-int' ? hash(method, path, hash(body)) : hash(method, path);
  const between = quality === '' ? [] : [read('nc'), read('cnonce'), quality];
  return read('response') === hash(known, read('nonce'), ...between, what);
}
