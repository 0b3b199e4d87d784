/**
 * An ONVIF camera on the loopback: SOAP over HTTP or HTTPS with WS-Security or HTTP digest, media, PTZ, events by pull
 * and by webhook. It can do wrong whatever cameras were seen to do wrong.
 */
import { createHash, randomBytes } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type FakeEvents, fakeEvents } from './fake-onvif-events.ts';
import { envelope, fault, type Soap, soapOperations } from './fake-onvif-services.ts';

export interface FakeCameraSettings {
  username: string;
  password: string;
  /** `either`: WS-Security or digest; `none`: no login at all. */
  auth: 'ws_security' | 'digest' | 'either' | 'none';
  manufacturer: string;
  model: string;
  serial: string;
  firmware: string;
  mac: string;
  /** How far its clock is ahead, milliseconds. */
  skew_ms: number;
  ptz: boolean;
  presets: { token: string; name: string }[];
  /** Which services it has beside the device service. */
  services: string[];
  /** Knows GetServices; older ones know GetCapabilities only. */
  hasGetServices: boolean;
  /** Prefix of the SOAP envelope in its replies. */
  prefix: string;
  digest_challenge: string | undefined;
}

/** What an operation answers when a test has its way. */
export type Misbehaviour =
  | { readonly body: string; readonly status?: number }
  | { readonly raw: string; readonly status?: number }
  | { readonly fault: string; readonly reason?: string }
  /** Says nothing, for ever; ends the connection in the middle; sends a byte now and then; does as it would otherwise. */
  | 'hang'
  | 'abort'
  | 'drip'
  | 'normal';

export interface FakeRequest {
  readonly operation: string;
  readonly path: string;
  readonly body: string;
  readonly authorization: string | undefined;
}

export interface FakeCamera {
  readonly port: number;
  readonly settings: FakeCameraSettings;
  readonly requests: readonly FakeRequest[];
  readonly events: FakeEvents;
  /** Velocity now, and what has been done with it. */
  readonly motor: { x: number; y: number; preset: string | undefined; moved: number };
  count(operation: string): number;
  /** Answers each request of an operation until another word. */
  misbehave(operation: string, how: Misbehaviour | (() => Misbehaviour)): void;
  /** Resolves at the next request of the operation. */
  next(operation: string): Promise<FakeRequest>;
  forget(): void;
  /** Refuses connections and drops those that are open; subscriptions die with a reboot. */
  lose(): Promise<void>;
  restore(): Promise<void>;
  reboot(): Promise<void>;
  stop(): Promise<void>;
}

const defaults = (): FakeCameraSettings => ({
  username: 'kit',
  password: 'pässwörd & <more>',
  auth: 'either',
  manufacturer: 'Acme',
  model: '007',
  serial: '12345678901234567890',
  firmware: '1.0',
  mac: '00:1b:c5:00:00:07',
  skew_ms: 0,
  ptz: true,
  presets: [
    { token: '1', name: 'Gate' },
    { token: '1.0', name: 'Gate' },
    { token: 'a&b', name: 'Yard' },
  ],
  services: ['media', 'ptz', 'events'],
  hasGetServices: true,
  prefix: 's',
  digest_challenge: undefined,
});

export async function startFakeCamera(
  settings: Partial<FakeCameraSettings> = {},
  tls?: { readonly key: string; readonly cert: string },
): Promise<FakeCamera> {
  const camera = new Camera({ ...defaults(), ...settings }, tls);
  await camera.restore();
  return camera;
}

class Camera implements FakeCamera {
  port = 0;
  readonly settings: FakeCameraSettings;
  readonly requests: FakeRequest[] = [];
  readonly events: FakeEvents;
  readonly motor = { x: 0, y: 0, preset: undefined as string | undefined, moved: 0 };
  readonly #tls;
  readonly #heard = new EventEmitter<{ request: [FakeRequest] }>().setMaxListeners(100);
  readonly #misbehaviours = new Map<string, Misbehaviour | (() => Misbehaviour)>();
  readonly #operations: Readonly<Record<string, Soap>>;
  readonly #nonce = randomBytes(8).toString('hex');
  #server: Server | undefined;

  constructor(
    settings: FakeCameraSettings,
    tls: { readonly key: string; readonly cert: string } | undefined,
  ) {
    this.settings = settings;
    this.#tls = tls;
    this.events = fakeEvents(() => this.base, settings);
    this.#operations = { ...soapOperations(this), ...this.events.operations };
  }

  get base(): string {
    return `${this.#tls ? 'https' : 'http'}://127.0.0.1:${this.port}`;
  }

  count(operation: string): number {
    return this.requests.filter((each) => each.operation === operation).length;
  }

  misbehave(operation: string, how: Misbehaviour | (() => Misbehaviour)): void {
    this.#misbehaviours.set(operation, how);
  }

  async next(operation: string): Promise<FakeRequest> {
    return new Promise((resolve) => {
      const take = (request: FakeRequest): void => {
        if (request.operation !== operation) return;
        this.#heard.off('request', take);
        resolve(request);
      };
      this.#heard.on('request', take);
    });
  }

  forget(): void {
    this.requests.length = 0;
  }

  async restore(): Promise<void> {
    if (this.#server) return;
    const serve = (request: IncomingMessage, response: ServerResponse): void =>
      void this.#serve(request, response);
    const server = this.#tls ? createSecureServer(this.#tls, serve) : createServer(serve);
    server.on('tlsClientError', () => undefined);
    this.#server = server;
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
    const at = server.address();
    this.port = typeof at === 'object' && at !== null ? at.port : 0;
  }

  async lose(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  }

  async reboot(): Promise<void> {
    await this.lose();
    this.events.forgetAll();
    await this.restore();
  }

  async stop(): Promise<void> {
    await this.lose();
    this.events.forgetAll();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    request.setEncoding('utf8');
    request.on('error', () => undefined);
    for await (const chunk of request) body += String(chunk);
    const operation = /<(?:\w+:)?Body[^>]*>\s*<(?:\w+:)?(\w+)/u.exec(body)?.[1] ?? '';
    const { authorization } = request.headers;
    const heard = { operation, path: request.url ?? '', body, authorization };
    this.requests.push(heard);
    this.#heard.emit('request', heard);
    const set = this.#misbehaviours.get(operation) ?? 'normal';
    const how = typeof set === 'function' ? set() : set;
    if (how === 'normal') await this.#answer(heard, response);
    else misbehave(how, response, this.settings.prefix);
  }

  async #answer(heard: FakeRequest, response: ServerResponse): Promise<void> {
    const refusal = heard.operation === 'GetSystemDateAndTime' ? undefined : this.#refusal(heard);
    if (refusal !== undefined) {
      if (refusal === 'challenge') {
        const challenge =
          this.settings.digest_challenge ??
          `Digest realm="fake", qop="auth, auth-int", nonce="${this.#nonce}"`;
        response.writeHead(401, { 'WWW-Authenticate': challenge }).end();
      } else send(response, 400, fault('ter:NotAuthorized', 'Sender not authorized', this.settings.prefix));
      return;
    }
    const soap = this.#operations[heard.operation];
    const answer = (await soap?.(heard, response)) ?? undefined;
    if (response.destroyed || response.writableEnded) return;
    if (answer === undefined) {
      send(response, 400, fault('ter:ActionNotSupported', `no ${heard.operation}`, this.settings.prefix));
    } else if (typeof answer === 'string') send(response, 200, envelope(answer, this.settings.prefix));
    else send(response, 400, fault(answer.fault, answer.reason ?? '', this.settings.prefix));
  }

  #refusal({ body, authorization, path }: FakeRequest): 'fault' | 'challenge' | undefined {
    const { auth } = this.settings;
    if (auth === 'none') return undefined;
    const isToken = /<(?:\w+:)?UsernameToken/u.test(body);
    if (auth !== 'digest' && isToken) return this.#isGenuine(body) ? undefined : 'fault';
    if (auth === 'ws_security') return 'fault';
    // Cameras that know digest only refuse a header that they do not know.
    if (isToken) return 'fault';
    return authorization !== undefined && this.#isDigest(authorization, path) ? undefined : 'challenge';
  }

  /** UsernameToken Profile 1.1: the digest over nonce, time and password, and a time that is not old. */
  #isGenuine(body: string): boolean {
    const read = (name: string): string =>
      new RegExp(`<(?:\\w+:)?${name}(?:\\s[^>]*)?>([^<]*)<`, 'u').exec(body)?.[1] ?? '';
    const created = read('Created');
    const hash = createHash('sha1')
      .update(Buffer.from(read('Nonce'), 'base64'))
      .update(created);
    const expected = hash.update(this.settings.password, 'utf8').digest('base64');
    const off_ms = Math.abs(Date.parse(created) - (Date.now() + this.settings.skew_ms));
    const name = unescape(read('Username'));
    return name === this.settings.username && read('Password') === expected && off_ms < 10_000;
  }

  #isDigest(header: string, path: string): boolean {
    const read = (name: string): string => new RegExp(`${name}="?([^",]*)`, 'u').exec(header)?.[1] ?? '';
    const algorithm = /sha-256/iu.test(header) ? 'sha256' : 'md5';
    const hash = (...parts: readonly string[]): string =>
      createHash(algorithm).update(parts.join(':')).digest('hex');
    const { username, password } = this.settings;
    const known = hash(username, read('realm'), password);
    const qop = read('qop') === '' ? [] : [read('nc'), read('cnonce'), 'auth'];
    return read('response') === hash(known, read('nonce'), ...qop, hash('POST', path));
  }
}

function unescape(text: string): string {
  return text.replaceAll(/&#(\d+);/gu, (_, code: string) => String.fromCodePoint(Number(code)));
}

function send(response: ServerResponse, status: number, xml: string): void {
  response.writeHead(status, { 'Content-Type': 'application/soap+xml; charset=utf-8' }).end(xml);
}

function misbehave(how: Exclude<Misbehaviour, 'normal'>, response: ServerResponse, prefix: string): void {
  if (how === 'hang') return;
  if (how === 'abort') {
    response.writeHead(200, { 'Content-Length': 5_000 });
    response.write('<x>', () => response.destroy());
  } else if (how === 'drip') {
    response.writeHead(200);
    const timer = setInterval(() => response.write(' '), 50);
    response.on('close', () => clearInterval(timer));
  } else if ('raw' in how) send(response, how.status ?? 200, how.raw);
  else if ('fault' in how) send(response, 400, fault(how.fault, how.reason ?? '', prefix));
  else send(response, how.status ?? 200, envelope(how.body, prefix));
}
