/** A vendor camera or recorder on the loopback: HTTP or HTTPS, sessions, channels, and every misbehaviour on command. */
import {
  createServer as createHttp,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { sleep } from '../../src/platform/time.ts';
import { FakeChannel, type Firmware, new_firmware } from './vendor-camera-channel.ts';
import { FakeSessions } from './vendor-camera-sessions.ts';
import { errorReply, type FakeCommand, type FakeReply, okReply } from './vendor-camera-wire.ts';

export interface FakeVendorCameraOptions {
  /** PEM; plain HTTP without it. */
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly firmware?: Partial<Firmware>;
  /** More than one makes it a recorder. */
  readonly channels?: number;
  readonly mac?: string;
}

/** How it answers requests other than logins. */
export type Mood =
  | 'well'
  | 'garbage'
  | 'not UTF-8'
  | 'drips'
  | 'hangs'
  | 'slow'
  | 'cuts off'
  | 'bad gateway'
  | 'too short'
  | 'redirects';

const slow_ms = 300;
const drip_ms = 100;
const batch_max = 35;

export class FakeVendorCamera {
  readonly sessions = new FakeSessions();
  readonly channels: readonly FakeChannel[];
  mac: string;
  mood: Mood = 'well';
  /** Commands answered with this error, by name or by name and channel (`GetMdState 1`), so many times. */
  readonly errors = new Map<string, { code: number; detail?: string; times: number }>();
  /** Commands that make a whole batch fail. */
  readonly spoilers = new Set<string>();
  isAdmin = true;
  rebootEffect: 'restarts' | 'nothing' | 'restarts unanswered' = 'restarts';
  away_ms = 300;
  /** Everything that was asked, in order. */
  readonly asked: FakeCommand[] = [];
  requests = 0;
  /** Requests under way at once, at most. */
  busiest = 0;
  connections = 0;
  #busy = 0;
  #server: Server | undefined;
  #port = 0;
  #tls: FakeVendorCameraOptions['tls'];
  readonly #sockets = new Set<Socket>();
  readonly #stopping = new AbortController();

  constructor({ tls, firmware = {}, channels = 1, mac = 'EC:71:DB:00:00:01' }: FakeVendorCameraOptions = {}) {
    this.#tls = tls;
    this.mac = mac;
    this.channels = Array.from({ length: channels }, (_none, index) => {
      const channel = new FakeChannel({ ...new_firmware, ...firmware });
      if (channels > 1) {
        channel.name = `Cam ${index + 1}`;
        channel.uid = `95270000000000${String(index + 1).padStart(2, '0')}`;
      }
      return channel;
    });
  }

  get port(): number {
    return this.#port;
  }

  /** The first channel: the camera itself. */
  get camera(): FakeChannel {
    const [first] = this.channels;
    if (!first) throw new Error('a camera has a channel');
    return first;
  }

  /** How often this command was asked. */
  count(cmd: string): number {
    return this.asked.filter((each) => each.cmd === cmd).length;
  }

  /** Listens, after `lose` on the same port again. */
  async start(): Promise<void> {
    if (this.#server) return;
    const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
      void this.#serve(request, response).catch(() => response.destroy());
    };
    const server = this.#tls ? createHttps(this.#tls, onRequest) : createHttp(onRequest);
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

  /** Power off: no port, no connections. Sessions are kept unless `forgetAll` is called. */
  async lose(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const socket of this.#sockets) socket.destroy();
    if (server) {
      await new Promise((resolve) => {
        server.close(resolve);
      });
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.lose();
  }

  /** Another device, or the same after a factory reset. */
  showCertificate(tls: { readonly cert: string; readonly key: string }): void {
    this.#tls = tls;
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
    const commands = JSON.parse(Buffer.concat(chunks).toString()) as readonly FakeCommand[];
    const url = new URL(request.url ?? '/', 'http://camera');
    if (url.pathname !== '/api.cgi' && url.pathname !== '/cgi-bin/api.cgi') {
      response.writeHead(404).end();
      return;
    }
    this.asked.push(...commands);
    const replies = this.#answer(commands, url.searchParams.get('token'));
    const isReboot = commands.some(({ cmd }) => cmd === 'Reboot') && replies[0]?.['code'] === 0;
    if (isReboot && this.rebootEffect === 'restarts unanswered') return this.#restart();
    await this.#send(response, replies);
    if (isReboot && this.rebootEffect === 'restarts') await this.#restart();
    return undefined;
  }

  async #restart(): Promise<void> {
    await this.lose();
    this.sessions.forgetAll();
    await sleep(this.away_ms, this.#stopping.signal);
    if (!this.#stopping.signal.aborted) await this.start();
  }

  // oxlint-disable-next-line complexity -- one case for each mood
  async #send(response: ServerResponse, replies: readonly FakeReply[]): Promise<void> {
    const isLogin = replies[0]?.['cmd'] === 'Login';
    const text = JSON.stringify(replies);
    const mood = isLogin ? 'well' : this.mood;
    // The real ones call it HTML.
    const head = (): ServerResponse => response.writeHead(200, { 'content-type': 'text/html' });
    switch (mood) {
      case 'hangs':
        return;
      case 'garbage':
        head().end('<html>busy</html>');
        return;
      case 'not UTF-8':
        head().end(
          Buffer.concat([
            Buffer.from(text.replace(/\}\]$/u, ',"x":"')),
            Buffer.from([0xff, 0xfe]),
            Buffer.from('"}]'),
          ]),
        );
        return;
      case 'cuts off':
        head().write(text.slice(0, 5));
        response.destroy();
        return;
      case 'bad gateway':
        response.writeHead(502).end();
        return;
      case 'redirects':
        response.writeHead(302, { location: 'https://camera/' }).end();
        return;
      case 'too short':
        head().end(JSON.stringify(replies.slice(0, -1)));
        return;
      case 'drips':
        head();
        for (const letter of text) {
          response.write(letter);
          await sleep(drip_ms, this.#stopping.signal);
          if (response.destroyed || this.#stopping.signal.aborted) return;
        }
        response.end();
        return;
      case 'slow':
        await sleep(slow_ms, this.#stopping.signal);
        head().end(text);
        return;
      case 'well':
        head().end(text);
    }
  }

  #answer(commands: readonly FakeCommand[], token: string | null): readonly FakeReply[] {
    const [first] = commands;
    if (first?.cmd === 'Login') {
      return [this.sessions.login(first.param?.['User'] as { userName?: unknown } | undefined)];
    }
    if (!this.sessions.knows(token)) {
      return [errorReply(commands.length > 1 ? 'Unknown' : (first?.cmd ?? ''), -6, 'please login first')];
    }
    if (first?.cmd === 'Logout') return [this.sessions.logout(token)];
    if (commands.length > batch_max) return [errorReply('Unknown', -16, 'send failed')];
    const spoiler = commands.find(({ cmd }) => this.spoilers.has(cmd));
    if (spoiler) return [errorReply('Unknown', -10, 'protocol')];
    return commands.map((command) => this.#answerOne(command));
  }

  // oxlint-disable-next-line complexity -- the order of a camera's own checks
  #answerOne({ cmd, param = {} }: FakeCommand): FakeReply {
    const nested = (param['Alarm'] ?? param['MdAlarm'] ?? param) as { readonly channel?: number };
    const number = nested.channel ?? 0;
    const error = this.errors.get(`${cmd} ${number}`) ?? this.errors.get(cmd);
    if (error && error.times > 0) {
      error.times -= 1;
      return errorReply(cmd, error.code, error.detail ?? '');
    }
    const own = this.#answerHost(cmd);
    if (own) return own;
    const channel = this.channels[number];
    if (!channel) return errorReply(cmd, -49, 'Channel invalid');
    if (!channel.online) return errorReply(cmd, -99, 'Device offline');
    return channel.answer(cmd, param) ?? errorReply(cmd, -9, 'not support');
  }

  #answerHost(cmd: string): FakeReply | undefined {
    const isRecorder = this.channels.length > 1;
    switch (cmd) {
      case 'GetDevInfo': {
        const about = isRecorder
          ? { model: 'RLN8-410', name: 'NVR', type: 'NVR', exactType: 'NVR' }
          : { model: this.camera.model, name: this.camera.name, type: 'IPC' };
        const DevInfo = {
          ...about,
          channelNum: this.channels.length,
          firmVer: 'v3.1.0.2356',
          serial: '000000',
        };
        return okReply(cmd, { DevInfo });
      }
      case 'GetAbility': {
        const abilityChn = this.channels.map((channel) => channel.ability());
        const reboot = { permit: this.isAdmin ? 1 : 0, ver: 1 };
        const scheduleVersion = { permit: 0, ver: this.camera.firmware.scheduleVersion };
        return okReply(cmd, { Ability: { abilityChn, reboot, scheduleVersion } });
      }
      case 'GetLocalLink':
        return okReply(cmd, { LocalLink: { activeLink: 'LAN', mac: this.mac, type: 'DHCP' } });
      case 'GetNetPort':
        return okReply(cmd, { NetPort: { rtspEnable: 1, rtspPort: 554, httpsEnable: 1 } });
      case 'GetChannelstatus':
        return isRecorder ? okReply(cmd, this.#channelStatus()) : undefined;
      case 'Reboot':
        return okReply(cmd, { rspCode: 200 });
      default:
        return undefined;
    }
  }

  #channelStatus() {
    const status = this.channels.map(({ name, model, uid, online, asleep }, channel) => ({
      channel,
      name,
      typeInfo: model,
      online: online ? 1 : 0,
      sleep: asleep ? 1 : 0,
      ...(uid === undefined ? {} : { uid }),
    }));
    return { count: status.length, status };
  }
}
