/**
 * An ONVIF camera on the loopback: SOAP over HTTP or HTTPS with WS-Security or HTTP digest, media, PTZ, events by pull
 * and by webhook. It can do wrong whatever cameras were seen to do wrong.
 */
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import { sendXml, SimCamera, type SimEvents } from '../../drivers/onvif/sim/sim-camera.ts';
import type { SimMotor } from '../../drivers/onvif/sim/motor.ts';
import { envelope, fault } from '../../drivers/onvif/sim/services.ts';
import type { SimRequest, SimSettings } from '../../drivers/onvif/sim/settings.ts';
import type { FakeFile, FakeTls } from './fake-vendor-camera.ts';
import { freePort } from '../support/ports.ts';

export interface FakeCameraSettings extends SimSettings {
  /** `either`: WS-Security or digest; `none`: no login at all. */
  auth: 'ws_security' | 'digest' | 'basic' | 'either' | 'none';
  /** It answers to a refused token with a challenge, as a Hikvision (agsh/onvif#294), and not with a fault. */
  challenges_tokens?: boolean;
  /** What it answers to an envelope of SOAP 1.2, where it understands 1.1 alone. */
  soap_12?: Misbehaviour;
  /** Several: a header for each. */
  digest_challenge: string | string[] | undefined;
}

/** What an operation answers when a test has its way. */
export type Misbehaviour =
  | { readonly body: string; readonly status?: number }
  | { readonly raw: string; readonly status?: number }
  /** `date`: its HTTP header. */
  | { readonly fault: string; readonly reason?: string; readonly date?: Date }
  /** An encoding that was not asked for. */
  | { readonly packed: 'gzip' | 'deflate' | 'br'; readonly body: string }
  /** Lines of the head as they are sent. */
  | { readonly head: readonly string[]; readonly body: string }
  /** Sends the head of the request in front of its reply, or in place of it, as a Tapo does. */
  | { readonly echo: 'before' | 'instead' }
  /** Says nothing, for ever; ends the connection in the middle; sends a byte now and then; does as it would otherwise. */
  | 'hang'
  | 'abort'
  | 'drip'
  | 'normal';

export interface FakeCamera {
  /** What it sends in place of its picture. */
  file: FakeFile | undefined;
  readonly port: number;
  readonly settings: FakeCameraSettings;
  readonly requests: readonly SimRequest[];
  readonly events: SimEvents;
  readonly motor: SimMotor;
  motorOf(source: string): SimMotor;
  /** Relays and auxiliary functions, as they were switched last. */
  readonly switched: ReadonlyMap<string, string>;
  count(operation: string): number;
  /** Answers each request of an operation until another word. */
  misbehave(operation: string, how: Misbehaviour | (() => Misbehaviour)): void;
  /** Resolves at the next request of the operation. */
  next(operation: string): Promise<SimRequest>;
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
  zoom: true,
  presets: [
    { token: '1', name: 'Gate' },
    { token: '1.0', name: 'Gate' },
    { token: 'a&b', name: 'Yard' },
  ],
  services: ['media', 'ptz', 'events'],
  unlisted: [],
  hasGetServices: true,
  prefix: 's',
  snapshot: '/snap.jpg?profile=sub&size=1',
  rtsp_base: 'rtsp://192.168.7.7:8554',
  digest_challenge: undefined,
});

export async function startFakeCamera(
  settings: Partial<FakeCameraSettings> = {},
  tls?: FakeTls,
): Promise<FakeCamera> {
  const camera = new Camera({ ...defaults(), ...settings }, tls);
  await camera.restore();
  return camera;
}

class Camera extends SimCamera implements FakeCamera {
  declare readonly settings: FakeCameraSettings;
  readonly requests: SimRequest[] = [];
  readonly #heard = new EventEmitter<{ request: [SimRequest] }>().setMaxListeners(100);
  readonly #misbehaviours = new Map<string, Misbehaviour | (() => Misbehaviour)>();
  file: FakeFile | undefined;

  constructor(settings: FakeCameraSettings, tls: FakeTls | undefined) {
    super(settings);
    this.tls = tls;
  }

  count(operation: string): number {
    return this.requests.filter((each) => each.operation === operation).length;
  }

  misbehave(operation: string, how: Misbehaviour | (() => Misbehaviour)): void {
    this.#misbehaviours.set(operation, how);
  }

  async next(operation: string): Promise<SimRequest> {
    return new Promise((resolve) => {
      const take = (request: SimRequest): void => {
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
    if (!this.isListening) await this.listen(this.port || (await freePort()));
  }

  async reboot(): Promise<void> {
    await this.lose();
    this.events.forgetAll();
    await this.restore();
  }

  override async stop(): Promise<void> {
    await super.stop();
    this.events.forgetAll();
  }

  protected override async answer(asked: SimRequest, response: ServerResponse): Promise<void> {
    this.requests.push(asked);
    this.#heard.emit('request', asked);
    const isForeign = asked.operation !== 'GET' && !asked.body.includes(soap_11);
    const set =
      this.#misbehaviours.get(asked.operation) ?? (isForeign ? this.settings.soap_12 : undefined) ?? 'normal';
    const how = typeof set === 'function' ? set() : set;
    if (typeof how === 'object' && 'echo' in how) await this.#echo(how.echo, asked, response);
    else if (how === 'normal') await super.answer(asked, response);
    else misbehave(how, response, this.settings.prefix);
  }

  async #echo(how: 'before' | 'instead', asked: SimRequest, response: ServerResponse): Promise<void> {
    const lines = [`POST ${asked.path}`, 'HTTP/1.1', '', 'Content-Type', ' application/soap+xml', '', 'Acc'];
    response.socket?.write(lines.join('\0'));
    if (how === 'before') await super.answer(asked, response);
    else response.socket?.end('<?xml version="1.0"?><a/>');
  }

  protected override refusal(asked: SimRequest): ((response: ServerResponse) => void) | undefined {
    const { auth } = this.settings;
    const isToken = /<(?:\w+:)?UsernameToken/u.test(asked.body);
    if (auth === 'none') return undefined;
    if (auth === 'basic') {
      const { username, password } = this.settings;
      const expected = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
      return asked.authorization === expected ? undefined : (response) => this.challenge(response);
    }
    if (auth === 'ws_security' || (auth === 'either' && isToken)) return super.refusal(asked);
    // Cameras that know digest only refuse a header that they do not know.
    if (isToken && this.settings.challenges_tokens !== true)
      return (response) => this.sendNotAuthorized(response);
    const { authorization, path, body, operation } = asked;
    return this.digestRefusal({ authorization, path, body, method: operation === 'GET' ? 'GET' : 'POST' });
  }

  protected override challenge(response: ServerResponse): void {
    const { auth, digest_challenge } = this.settings;
    const challenge = auth === 'basic' ? 'Basic realm="camera"' : digest_challenge;
    if (challenge === undefined) super.challenge(response);
    else response.writeHead(401, { 'WWW-Authenticate': challenge }).end();
  }

  protected override sendFile(asked: SimRequest, response: ServerResponse): void {
    const { file } = this;
    if (!file) super.sendFile(asked, response);
    else response.writeHead(200, { 'Content-Type': file.type }).end(file.bytes);
  }
}

const soap_11 = 'http://schemas.xmlsoap.org/soap/envelope/';

function misbehave(
  how: Exclude<Misbehaviour, 'normal' | { echo: unknown }>,
  response: ServerResponse,
  prefix: string,
): void {
  if (typeof how === 'string') answerPartly(how, response);
  else if ('packed' in how) {
    const pack = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync }[how.packed];
    response.writeHead(200, { 'Content-Encoding': how.packed }).end(pack(envelope(how.body, prefix)));
  } else if ('raw' in how) sendXml(response, how.status ?? 200, how.raw);
  else if ('head' in how) {
    const lines = ['HTTP/1.1 200 OK', ...how.head, '', envelope(how.body, prefix)];
    response.socket?.end(lines.join('\r\n'));
  } else if ('fault' in how) {
    if (how.date) response.setHeader('Date', how.date.toUTCString());
    sendXml(response, 400, fault(how.fault, how.reason ?? '', prefix));
  } else sendXml(response, how.status ?? 200, envelope(how.body, prefix));
}

function answerPartly(how: 'hang' | 'abort' | 'drip', response: ServerResponse): void {
  if (how === 'abort') {
    response.writeHead(200, { 'Content-Length': 5_000 });
    response.write('<x>', () => response.destroy());
  } else if (how === 'drip') {
    response.writeHead(200);
    const timer = setInterval(() => response.write(' '), 50);
    response.on('close', () => clearInterval(timer));
  }
}
