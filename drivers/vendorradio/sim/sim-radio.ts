/** A simulated OpenWrt radio on the loopback, for trials and as the base of the tests' fake: uhttpd's ubus JSON-RPC, without TLS. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { SimServer } from '../../../src/toolkit/device/sim-server.ts';
import { every, sleep } from '../../../src/platform/time.ts';
import {
  SimWifi,
  type Args,
  callParams,
  no_session,
  sim_errors,
  type SimReply,
  simRequest,
  type SimRequest,
  type SimResult,
} from './wifi.ts';
import { randomBytes } from 'node:crypto';

export interface SimRadioOptions {
  readonly mac?: string;
  readonly user?: { readonly name: string; readonly password: string };
}

/** uhttpd takes no more from a client and closes the connection. */
const body_bytes_max = 65_536;
const step_ms = 1_000;
/** A peer that approaches and departs. */
const sway = { middle_dbm: -62, width_db: 8, period_s: 60 };
const bytes_per_step = { rx: 90_000, tx: 260_000 };

/** Listens until the signal aborts, with a moving peer and constant traffic. Rejects when the port is taken. */
export async function startSimRadio(
  about: Required<SimRadioOptions>,
  port: number,
  signal: AbortSignal,
): Promise<SimRadio> {
  const radio = new SimRadio(about);
  await radio.listen(port);
  signal.addEventListener('abort', () => void radio.stop(), { once: true });
  const { wifi } = radio;
  let steps = 0;
  every(step_ms, signal, () => {
    steps += 1;
    wifi.uptime_s += 1;
    const turn = Math.sin((2 * Math.PI * steps) / sway.period_s);
    for (const station of wifi.stations) {
      station.signal = Math.round(sway.middle_dbm + sway.width_db * turn);
      station.rx = { ...station.rx, bytes: steps * bytes_per_step.rx };
      station.tx = { ...station.tx, bytes: steps * bytes_per_step.tx };
    }
  });
  return radio;
}

export class SimRadio extends SimServer {
  readonly wifi: SimWifi;
  readonly sessions: SimSessions;
  isRpcdUp = true;
  /** How long a restart takes. */
  away_ms = 3_000;
  protected override readonly keep_alive_ms = 20_000;

  constructor({
    mac = '02:00:00:AA:BB:01',
    user = { name: 'kit', password: 'secret' },
  }: SimRadioOptions = {}) {
    super();
    this.wifi = new SimWifi(mac);
    this.sessions = new SimSessions(user);
  }

  override async stop(): Promise<void> {
    this.wifi.settings.stop();
    await super.stop();
  }

  protected override async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await bodyOf(request);
    if (body === undefined) {
      response.destroy();
    } else if (request.method !== 'POST' || request.url !== '/ubus') {
      response.writeHead(404).end();
    } else {
      await this.reply(response, body);
    }
  }

  /** With status 200, whatever the answer is. */
  protected async reply(response: ServerResponse, body: string): Promise<void> {
    const text = JSON.stringify(this.answerText(body));
    response.writeHead(200, { 'content-type': 'application/json' });
    // In chunks, as uhttpd writes it.
    response.write(text.slice(0, 10));
    response.end(text.slice(10));
    if (this.wifi.isRebooting) await this.#reboot();
  }

  protected answerText(body: string): object {
    const asked = z.union([simRequest, z.array(simRequest)]).safeParse(jsonIn(body)).data;
    if (asked === undefined) return { jsonrpc: '2.0', id: null, error: sim_errors.parse };
    const whole = (each: SimRequest) => ({ jsonrpc: '2.0', id: each.id, ...this.answer(each) });
    return Array.isArray(asked) ? asked.map(whole) : whole(asked);
  }

  /** In the order of the web server's own checks. */
  protected answer({ method, params }: SimRequest): SimReply {
    if (method === 'list') return { result: this.#objects() };
    const read = callParams.safeParse(params);
    if (!read.success) return { error: sim_errors.parse };
    const [sid, object, name, args] = read.data;
    if (!this.isRpcdUp && object !== 'system') return { error: sim_errors.no_object };
    if (object === 'session' && name === 'login' && sid === no_session) {
      return { result: this.sessions.login(args) };
    }
    if (!this.sessions.mayCall(sid, object, name)) return { error: sim_errors.denied };
    if (object === 'file' && !this.sessions.mayFile(String(args['path']), name)) return { result: [6] };
    return this.carryOut(sid, object, name, args);
  }

  /** What the session has the right to. */
  protected carryOut(sid: string, object: string, name: string, args: Args): SimReply {
    const result = this.wifi.call(sid, object, name, args);
    return result ? { result } : { error: sim_errors.no_object };
  }

  #objects(): readonly string[] {
    const own = this.isRpcdUp ? ['file', 'iwinfo', 'session', 'system', 'uci'] : ['system'];
    return this.wifi.isMeshRider ? [...own, 'message-system'] : own;
  }

  async #reboot(): Promise<void> {
    this.wifi.isRebooting = false;
    await this.lose();
    this.sessions.forgetAll();
    await sleep(this.away_ms, this.signal);
    this.wifi.uptime_s = 1;
    if (!this.signal.aborted) await this.listen();
  }
}

/** Undefined: it was longer than the web server takes. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) continue;
    size += chunk.length;
    if (size > body_bytes_max) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

// Logins of a simulated radio: rpcd's sessions, which each use extends, and their rights.

const rights = z.record(z.string(), z.array(z.string())).catch({});
const readable = z.looseObject({ ubus: rights.optional(), file: rights.optional() });

class SimSessions {
  user: { readonly name: string; readonly password: string };
  timeout_s = 300;
  /** The oldest session ends when a login would exceed this number. */
  sessions_max: number | undefined;
  /** Reported at the login and enforced; by default the rights of a whole kit. */
  acls: object = full_acls;
  logins = 0;
  /** How far the radio's clock is before ours. */
  ahead_ms = 0;
  readonly #expires_ms = new Map<string, number>();

  constructor(user: { readonly name: string; readonly password: string }) {
    this.user = user;
  }

  get size(): number {
    return this.#expires_ms.size;
  }

  forgetAll(): void {
    this.#expires_ms.clear();
  }

  login({ username, password }: Args): SimResult {
    this.logins += 1;
    if (typeof username !== 'string' || typeof password !== 'string') return [2];
    if (username !== this.user.name || password !== this.user.password) return [6];
    const sid = randomBytes(16).toString('hex');
    this.#prolong(sid);
    const [oldest] = this.#expires_ms.keys();
    if (oldest !== undefined && this.size > (this.sessions_max ?? Infinity)) this.#expires_ms.delete(oldest);
    const timeout = this.timeout_s;
    return [0, { ubus_rpc_session: sid, timeout, expires: timeout, acls: this.acls, data: { username } }];
  }

  /** Whether the session is valid and has the right. Each use renews it. */
  mayCall(sid: string, object: string, method: string): boolean {
    const expires_ms = this.#expires_ms.get(sid);
    if (expires_ms === undefined || expires_ms < this.#now_ms()) return false;
    this.#prolong(sid);
    return readable.safeParse(this.acls).data?.ubus?.[object]?.includes(method) ?? false;
  }

  mayFile(path: string, right: string): boolean {
    return readable.safeParse(this.acls).data?.file?.[path]?.includes(right) ?? false;
  }

  #now_ms(): number {
    return performance.now() + this.ahead_ms;
  }

  #prolong(sid: string): void {
    this.#expires_ms.set(sid, this.#now_ms() + this.timeout_s * 1_000);
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
