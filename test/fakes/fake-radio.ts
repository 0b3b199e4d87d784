/** An OpenWrt radio on the loopback: uhttpd's ubus JSON-RPC with sessions, rights, staged settings with rollback, and every misbehaviour. */
import { randomBytes } from 'node:crypto';
import {
  createServer as createHttp,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { sleep } from '../../src/platform/time.ts';
import { RadioState } from './radio-state.ts';

export interface FakeRadioOptions {
  /** PEM; plain HTTP without it. */
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly mac?: string;
  readonly user?: { readonly name: string; readonly password: string };
}

export type Mood = 'well' | 'mute' | 'slow' | 'invalid JSON' | 'login page' | 'no ubus' | 'no batches';

interface Request {
  readonly id: number;
  readonly method: string;
  readonly params?: readonly unknown[];
}

interface Session {
  expires_mono_ms: number;
}

const no_session = '0'.repeat(32);
const body_bytes_max = 65_536;
const slow_ms = 400;

export class FakeRadio {
  readonly state: RadioState;
  mood: Mood = 'well';
  user: { readonly name: string; readonly password: string };
  session_timeout_s = 300;
  /** Answers of one method, by `object method`, instead of the usual one: a status, or a whole reply. */
  readonly answers = new Map<
    string,
    readonly unknown[] | { readonly code: number; readonly message: string }
  >();
  /** What the login may do; the rights of a whole kit when nothing is changed. */
  acls: object = full_acls;
  isRpcdUp = true;
  away_ms = 200;
  readonly asked: string[] = [];
  logins = 0;
  requests = 0;
  connections = 0;
  /** Requests under way at once, at most. */
  busiest = 0;
  #busy = 0;
  readonly #sessions = new Map<string, Session>();
  readonly #sockets = new Set<Socket>();
  readonly #stopping = new AbortController();
  #tls: FakeRadioOptions['tls'];
  #server: Server | undefined;
  #port = 0;

  constructor({
    tls,
    mac = '02:00:00:AA:BB:01',
    user = { name: 'kit', password: 'secret' },
  }: FakeRadioOptions = {}) {
    this.#tls = tls;
    this.user = user;
    this.state = new RadioState(mac);
  }

  get port(): number {
    return this.#port;
  }

  get sessions(): number {
    return this.#sessions.size;
  }

  count(call: string): number {
    return this.asked.filter((each) => each === call).length;
  }

  /** Listens, after `lose` on the same port again. */
  async start(): Promise<void> {
    if (this.#server) return;
    const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
      void this.#serve(request, response).catch(() => response.destroy());
    };
    const server = this.#tls ? createHttps(this.#tls, onRequest) : createHttp(onRequest);
    server.keepAliveTimeout = 20_000;
    server.on('connection', (socket: Socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
      socket.on('error', () => undefined);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve) => {
      server.listen(this.#port, '127.0.0.1', resolve);
    });
    this.#port = (server.address() as AddressInfo).port;
    this.#server = server;
  }

  /** Power off: no port, no connections. */
  async lose(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    if (!server) return;
    await new Promise((resolve) => {
      server.close(resolve);
    });
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.state.stop();
    await this.lose();
  }

  /** Another radio at the address, or the same after a factory reset; from the next `start` on. */
  showCertificate(tls: { readonly cert: string; readonly key: string }): void {
    this.#tls = tls;
  }

  /** rpcd restarts: its objects are gone for a while, and all sessions for good. */
  stopRpcd(): void {
    this.isRpcdUp = false;
    this.#sessions.clear();
  }

  forgetSessions(): void {
    this.#sessions.clear();
  }

  async #reboot(): Promise<void> {
    await this.lose();
    this.#sessions.clear();
    await sleep(this.away_ms, this.#stopping.signal);
    this.state.uptime_s = 1;
    if (!this.#stopping.signal.aborted) await this.start();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests += 1;
    this.#busy += 1;
    this.busiest = Math.max(this.busiest, this.#busy);
    response.once('close', () => {
      this.#busy -= 1;
    });
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    if (body.length > body_bytes_max) {
      response.destroy();
      return;
    }
    if (request.method !== 'POST' || request.url !== '/ubus' || this.mood === 'no ubus') {
      response.writeHead(404).end();
      return;
    }
    if (this.mood === 'mute') return;
    if (this.mood === 'slow') await sleep(slow_ms, this.#stopping.signal);
    const head = response.writeHead(200, { 'content-type': 'application/json' });
    if (this.mood === 'invalid JSON') head.end('{"jsonrpc":"2.0","id":1,"resu');
    else if (this.mood === 'login page') head.end('<!DOCTYPE html><html><body>Log in</body></html>');
    else await this.#answerAll(JSON.parse(body.toString()) as Request | readonly Request[], response);
  }

  async #answerAll(requests: Request | readonly Request[], response: ServerResponse): Promise<void> {
    const isBatch = Array.isArray(requests);
    if (isBatch && this.mood === 'no batches') {
      response.end(
        JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32_700, message: 'Parse error' } }),
      );
      return;
    }
    const all = (isBatch ? requests : [requests]) as readonly Request[];
    const replies = all.map((each) => ({ jsonrpc: '2.0', id: each.id, ...this.#answer(each) }));
    const isReboot = this.state.isRebooting;
    this.state.isRebooting = false;
    // In chunks, as uhttpd writes it.
    const text = JSON.stringify(isBatch ? replies : replies[0]);
    response.write(text.slice(0, 10));
    response.end(text.slice(10));
    if (isReboot) await this.#reboot();
  }

  // oxlint-disable-next-line complexity -- the order of the web server's own checks
  #answer({ method, params }: Request): object {
    if (method === 'list') {
      const objects = this.isRpcdUp ? ['file', 'iwinfo', 'session', 'system', 'uci'] : ['system'];
      return { result: this.state.isMeshRider ? [...objects, 'message-system'] : objects };
    }
    if (!params || params.length < 4) return { error: { code: -32_700, message: 'Parse error' } };
    const [sid, object, name, args] = params as readonly [
      string,
      string,
      string,
      Readonly<Record<string, unknown>>,
    ];
    this.asked.push(`${object} ${name}`);
    const isOurs = object !== 'system';
    if (!this.isRpcdUp && isOurs) return { error: { code: -32_000, message: 'Object not found' } };
    if (object === 'session' && name === 'login' && sid === no_session) return { result: this.#login(args) };
    const session = this.#sessions.get(sid);
    const isDead = !session || session.expires_mono_ms < performance.now();
    if (isDead || !this.#mayCall(object, name)) return { error: { code: -32_002, message: 'Access denied' } };
    // The timeout slides: each call gives the session its whole life again.
    session.expires_mono_ms = performance.now() + this.session_timeout_s * 1_000;
    const scripted = this.answers.get(`${object} ${name}`);
    if (scripted) return 'code' in scripted ? { error: scripted } : { result: scripted };
    if (object === 'file' && !this.#mayFile(String(args['path']), name)) return { result: [6] };
    const result = this.state.call(sid, `${object} ${name}`, args);
    return result ? { result } : { error: { code: -32_000, message: 'Object not found' } };
  }

  #login({ username, password }: Readonly<Record<string, unknown>>): readonly unknown[] {
    this.logins += 1;
    if (typeof username !== 'string' || typeof password !== 'string') return [2];
    if (username !== this.user.name || password !== this.user.password) return [6];
    const sid = randomBytes(16).toString('hex');
    this.#sessions.set(sid, { expires_mono_ms: performance.now() + this.session_timeout_s * 1_000 });
    const timeout = this.session_timeout_s;
    return [0, { ubus_rpc_session: sid, timeout, expires: timeout, acls: this.acls, data: { username } }];
  }

  #mayCall(object: string, name: string): boolean {
    const { ubus = {} } = this.acls as { ubus?: Readonly<Record<string, readonly string[]>> };
    return ubus[object]?.includes(name) ?? false;
  }

  #mayFile(path: string, right: string): boolean {
    const { file = {} } = this.acls as { file?: Readonly<Record<string, readonly string[]>> };
    return file[path]?.includes(right) ?? false;
  }
}

export const full_acls = {
  'access-group': { 'kit-connector': ['read', 'write'] },
  ubus: {
    iwinfo: ['info', 'devices', 'assoclist', 'survey', 'freqlist', 'txpowerlist', 'scan'],
    system: ['board', 'info', 'reboot'],
    file: ['read', 'write'],
    uci: ['get', 'set', 'delete', 'revert', 'apply', 'confirm', 'rollback'],
    'message-system': ['chswitch'],
  },
  file: {
    '/proc/stat': ['read'],
    '/sys/class/net/wlan0/address': ['read'],
    '/sys/class/leds/green:status/trigger': ['read', 'write'],
    '/tmp/linkstate_current.json': ['read'],
    '/tmp/run/pancake.txt': ['read'],
    '/var/run/gps/latitude': ['read'],
    '/var/run/gps/longitude': ['read'],
  },
  uci: { wireless: ['read', 'write'] },
};
