/** A simulated vendor camera or recorder on the loopback, for trials and as the base of the tests' fake: its HTTP interface, without TLS. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { z } from 'zod';
import { samplePicture } from '../../../src/toolkit/device/pictures/sample-picture.ts';
import { SimServer } from '../../../src/toolkit/device/sim-server.ts';
import { every, sleep } from '../../../src/platform/time.ts';
import {
  errorReply,
  type Firmware,
  new_firmware,
  okReply,
  SimChannel,
  type SimCommand,
  type SimReply,
} from './channel.ts';
import { SimSessions } from './sessions.ts';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { aesDecrypt, aesEncrypt, aesKey, hashOf, textIn, xor } from '../push/cipher.ts';
import { classes, commands, type Frame, frameBytes, FrameReader } from '../push/wire.ts';

const address = '127.0.0.1';
const frame_bytes_max = 65_536;
const unknown_command = 400;
/** Of other clients; the driver closes the connection. */
const logout = 2;
/** Of other clients, which ask here before they ask over HTTP. */
const play_audio = 263;
/** How often the channels are looked at. */
const look_ms = 20;

/** One client. */
export interface SimClient {
  readonly socket: Socket;
  nonce: string;
  isSubscribed: boolean;
}

export class SimPush {
  readonly #sessions: SimSessions;
  readonly #channels: readonly SimChannel[];
  readonly clients = new Set<SimClient>();
  /** Number of logins, with any password. */
  logins = 0;
  #server: Server | undefined;
  #port = 0;
  #closing = new AbortController();
  #told = '';

  constructor(sessions: SimSessions, channels: readonly SimChannel[]) {
    this.#sessions = sessions;
    this.#channels = channels;
  }

  get port(): number {
    return this.#port;
  }

  get subscribers(): number {
    return [...this.clients].filter(({ isSubscribed }) => isSubscribed).length;
  }

  /** Listens, after `close` on the same port again. */
  async listen(port = this.#port): Promise<void> {
    const server = createServer((socket) => this.#serve(socket));
    server.listen(port, address);
    await once(server, 'listening');
    const bound = server.address();
    this.#port = typeof bound === 'object' && bound ? bound.port : 0;
    this.#server = server;
    this.#closing = new AbortController();
    every(look_ms, this.#closing.signal, () => this.#look());
  }

  /** Closes the port and the connections. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.#closing.abort();
    for (const { socket } of this.clients) socket.destroy();
    if (!server) return;
    server.close();
    await once(server, 'close');
  }

  /** Sends this list of alarms to all who subscribed. */
  send(xml: string): void {
    for (const client of this.clients) if (client.isSubscribed) this.sendAlarms(client, xml);
  }

  protected sendAlarms({ socket, nonce }: SimClient, xml: string): void {
    const payload = aesEncrypt(Buffer.from(xml), aesKey(nonce, this.#sessions.password));
    socket.write(frameBytes({ command: commands.alarms, id: 0, status: 200, class: classes.reply, payload }));
  }

  protected answer(client: SimClient, frame: Frame): void {
    if (frame.class === classes.hello) this.#sayNonce(client, frame);
    else if (frame.command === commands.login) this.#logIn(client, frame);
    else if (frame.command === commands.subscribe) this.#subscribe(client, frame);
    else if (frame.command === commands.keep_alive || frame.command === logout) this.reply(client, frame);
    else if (frame.command === play_audio) this.#playSiren(client, frame);
    // Other clients would wait for an answer to each request; an answer of theirs has a status.
    else if (frame.status === 0) this.reply(client, frame, unknown_command);
  }

  protected reply({ socket }: SimClient, { command, id }: Frame, status = 200): void {
    socket.write(frameBytes({ command, id, status, class: classes.reply }));
  }

  #playSiren(client: SimClient, frame: Frame): void {
    const xml = aesDecrypt(frame.payload, aesKey(client.nonce, this.#sessions.password)).toString('utf8');
    const read = (name: string): number => Number(new RegExp(`<${name}>(\\d+)<`, 'u').exec(xml)?.[1] ?? 0);
    const channel = this.#channels[read('channelId')];
    if (channel?.hasSiren === true) channel.siren = read('onOff') === 1;
    this.reply(client, frame, channel?.hasSiren === true ? 200 : unknown_command);
  }

  #sayNonce(client: SimClient, { id }: Frame): void {
    const xml = `<?xml version="1.0" encoding="UTF-8" ?>\n<body>\n<Encryption version="1.1">\n<type>md5</type>\n<nonce>${client.nonce}</nonce>\n</Encryption>\n</body>\n`;
    const payload = xor(Buffer.from(xml), id);
    client.socket.write(
      frameBytes({ command: commands.login, id, status: 0xdd12, class: classes.nonce, payload }),
    );
  }

  #logIn(client: SimClient, frame: Frame): void {
    this.logins += 1;
    const text = textIn(frame, undefined) ?? '';
    const { username, password } = this.#sessions;
    const isRight = [username, password].every((part) =>
      text.includes(`>${hashOf(`${part}${client.nonce}`)}<`),
    );
    this.reply(client, frame, isRight ? 200 : 401);
    if (!isRight) this.#sessions.failures += 1;
  }

  #subscribe(client: SimClient, frame: Frame): void {
    client.isSubscribed = true;
    this.reply(client, frame);
    this.sendAlarms(client, alarmsOf(this.#channels));
  }

  #look(): void {
    const alarms = alarmsOf(this.#channels);
    if (alarms === this.#told) return;
    this.#told = alarms;
    this.send(alarms);
  }

  #serve(socket: Socket): void {
    const client = { socket, nonce: randomBytes(8).toString('hex').toUpperCase(), isSubscribed: false };
    this.clients.add(client);
    const reader = new FrameReader(frame_bytes_max);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.clients.delete(client));
    socket.on('data', (chunk: Buffer) => {
      for (const frame of reader.take(chunk)) this.answer(client, frame);
    });
  }
}

/** All channels in one list, as recorders send it. */
function alarmsOf(channels: readonly SimChannel[]): string {
  const events = channels.map(({ motion, rings, ai }, channel) => {
    const status = [...(motion ? ['MD'] : []), ...(rings === true ? ['visitor'] : [])].join() || 'none';
    return [
      '<AlarmEvent version="1.1">',
      `<channelId>${channel}</channelId>`,
      `<status>${status}</status>`,
      `<AItype>${[...ai].join() || 'none'}</AItype>`,
      '<recording>0</recording>',
      '<timeStamp>0</timeStamp>',
      '</AlarmEvent>',
    ].join('\n');
  });
  const list = ['<AlarmEventList version="1.1">', ...events, '</AlarmEventList>'].join('\n');
  return `<?xml version="1.0" encoding="UTF-8" ?>\n<body>\n${list}\n</body>\n`;
}

export interface SimHostOptions {
  readonly firmware?: Partial<Firmware>;
  /** More than one makes it a recorder. */
  readonly channels?: number;
  readonly mac?: string;
}

const batch_max = 35;
/** First detection, its interval and its duration. */
const first_visit_ms = 4_000;
const visit_every_ms = 20_000;
const visit_ms = 6_000;
const visit_step_ms = 500;
const reboot_ms = 5_000;

const sentCommands = z.array(
  z.looseObject({ cmd: z.string(), param: z.record(z.string(), z.unknown()).optional() }),
);
const login = z.looseObject({ userName: z.unknown(), password: z.unknown() });
const channelParam = z.looseObject({ channel: z.int().optional() });

export interface SimDevice {
  readonly password: string;
  readonly name: string;
  /** It pushes its events there; left out: it has no such port. */
  readonly push_port?: number | undefined;
}

/** Listens until the signal aborts, and sees a person now and then. Rejects when a port is taken. */
export async function startSimHost(
  { password, name, push_port }: SimDevice,
  port: number,
  signal: AbortSignal,
): Promise<SimHost> {
  const host = new SimHost();
  host.sessions.password = password;
  host.camera.name = name;
  await host.listen(port);
  const push = push_port === undefined ? undefined : new SimPush(host.sessions, host.channels);
  await push?.listen(push_port);
  const close = async (): Promise<void> => {
    await Promise.all([host.lose(), push?.close()]);
  };
  signal.addEventListener('abort', () => void close(), { once: true });
  host.onReboot = () => void restart(host, push, signal);
  const first_ms = performance.now() + first_visit_ms;
  every(visit_step_ms, signal, () => {
    const since_ms = performance.now() - first_ms;
    const isThere = since_ms >= 0 && since_ms % visit_every_ms < visit_ms;
    host.camera.motion = isThere;
    if (isThere) host.camera.ai.add('people');
    else host.camera.ai.clear();
  });
  return host;
}

/** Goes offline briefly and drops all sessions. */
async function restart(host: SimHost, push: SimPush | undefined, signal: AbortSignal): Promise<void> {
  await Promise.all([host.lose(), push?.close()]);
  host.sessions.forgetAll();
  await sleep(reboot_ms, signal);
  if (!signal.aborted) await Promise.all([host.listen(), push?.listen()]);
}

export class SimHost extends SimServer {
  /** Called once the order to restart was answered. */
  onReboot: () => void = () => undefined;
  readonly sessions = new SimSessions();
  readonly channels: readonly SimChannel[];
  mac: string;
  /** Undefined: it does not know the command. */
  uid: string | undefined;
  /** What GetChannelstatus reports: with or without models, or not at all. */
  channel_list: 'whole' | 'without models' | 'missing' = 'whole';
  /** A camera with several lenses calls itself IPC. */
  kind: 'NVR' | 'IPC' = 'NVR';
  serial = '00000000065536';
  /** 0: RTSP is switched off. */
  rtspEnable: 0 | 1 = 1;
  /** Its user may restart it. */
  isAdmin = true;
  /** Of its interface. */
  paths: readonly string[] = ['/api.cgi', '/cgi-bin/api.cgi'];
  /** What it has at all other paths. */
  elsewhere = { status: 404, body: '' };

  constructor({ firmware = {}, channels = 1, mac = 'EC:71:DB:00:00:01' }: SimHostOptions = {}) {
    super();
    this.mac = mac;
    this.channels = Array.from({ length: channels }, (_none, index) => {
      const channel = new SimChannel({ ...new_firmware, ...firmware });
      if (channels > 1) {
        channel.name = `Cam ${index + 1}`;
        channel.uid = `95270000000000${String(index + 1).padStart(2, '0')}`;
      }
      return channel;
    });
  }

  /** The first channel: the camera itself. */
  get camera(): SimChannel {
    const [first] = this.channels;
    if (!first) throw new Error('a camera has a channel');
    return first;
  }

  protected override async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://camera');
    if (request.method === 'GET') return this.servePicture(url.searchParams, response);
    const asked = await readCommands(request);
    if (!this.paths.includes(url.pathname)) {
      response.writeHead(this.elsewhere.status).end(this.elsewhere.body);
      return undefined;
    }
    return this.send(response, this.answer(asked, url.searchParams.get('token')));
  }

  /** `Snap`: a picture, or an error like that of any command. */
  protected async servePicture(asked: URLSearchParams, response: ServerResponse): Promise<void> {
    const command = { cmd: asked.get('cmd') ?? '', param: { channel: Number(asked.get('channel') ?? 0) } };
    const [reply] = this.answer([command], asked.get('token'));
    if (reply?.['code'] === 0) response.writeHead(200, { 'content-type': 'image/jpeg' }).end(samplePicture());
    else await this.send(response, reply ? [reply] : []);
  }

  /** The real ones call it HTML. */
  protected async send(response: ServerResponse, replies: readonly SimReply[]): Promise<void> {
    response.writeHead(200, { 'content-type': 'text/html' }).end(JSON.stringify(replies));
    const [first] = replies;
    if (first?.['cmd'] === 'Reboot' && first['code'] === 0) response.once('close', () => this.onReboot());
  }

  protected answer(asked: readonly SimCommand[], token: string | null): readonly SimReply[] {
    const [first] = asked;
    if (first?.cmd === 'Login') return [this.sessions.login(login.safeParse(first.param?.['User']).data)];
    if (!this.sessions.knows(token)) {
      return [errorReply(asked.length > 1 ? 'Unknown' : (first?.cmd ?? ''), -6, 'please login first')];
    }
    if (first?.cmd === 'Logout') return [this.sessions.logout(token)];
    return this.answerAll(asked);
  }

  /** The batch of a user who is logged in. */
  protected answerAll(asked: readonly SimCommand[]): readonly SimReply[] {
    if (asked.length > batch_max) return [errorReply('Unknown', -16, 'send failed')];
    return asked.map((command) => this.answerOne(command));
  }

  protected answerOne(command: SimCommand): SimReply {
    const { cmd, param = {} } = command;
    const own = this.#answerHost(cmd);
    if (own) return own;
    const channel = this.channels[channelOf(command)];
    if (!channel) return errorReply(cmd, -49, 'Channel invalid');
    if (!channel.online) return errorReply(cmd, -99, 'Device offline');
    return channel.answer(cmd, param) ?? errorReply(cmd, -9, 'not support');
  }

  #answerHost(cmd: string): SimReply | undefined {
    switch (cmd) {
      case 'GetDevInfo':
        return okReply(cmd, { DevInfo: this.#about() });
      case 'GetAbility': {
        const abilityChn = this.channels.map((channel) => channel.ability());
        const reboot = { permit: this.isAdmin ? 1 : 0, ver: 1 };
        const scheduleVersion = { permit: 0, ver: this.camera.firmware.scheduleVersion };
        return okReply(cmd, { Ability: { abilityChn, reboot, scheduleVersion } });
      }
      case 'GetLocalLink':
        return okReply(cmd, { LocalLink: { activeLink: 'LAN', mac: this.mac, type: 'DHCP' } });
      case 'GetP2p':
        return this.uid === undefined ? undefined : okReply(cmd, { P2p: { enable: 1, uid: this.uid } });
      case 'GetNetPort':
        return okReply(cmd, { NetPort: { rtspEnable: this.rtspEnable, rtspPort: 554, httpsEnable: 1 } });
      case 'GetChannelstatus':
        if (this.channels.length === 1 || this.channel_list === 'missing') return undefined;
        return okReply(cmd, this.#channelStatus());
      case 'Reboot':
        return okReply(cmd, { rspCode: 200 });
      default:
        return undefined;
    }
  }

  #about() {
    const about =
      this.channels.length > 1 && this.kind === 'NVR'
        ? { model: 'RLN8-410', name: 'NVR', type: 'NVR', exactType: 'NVR' }
        : { model: this.camera.model, name: this.camera.name, type: 'IPC' };
    const { serial } = this;
    const versions = { firmVer: 'v3.1.0.2356', hardVer: 'IPC_529B17B8MP' };
    return { ...about, ...versions, channelNum: this.channels.length, serial };
  }

  #channelStatus() {
    const status = this.channels.map(({ name, model, uid, online, asleep }, channel) => ({
      channel,
      name,
      ...(this.channel_list === 'whole' ? { typeInfo: model } : {}),
      online: online ? 1 : 0,
      sleep: asleep ? 1 : 0,
      ...(uid === undefined ? {} : { uid }),
    }));
    return { count: status.length, status };
  }
}

/** The number of the channel that a command is for. */
export function channelOf({ param = {} }: SimCommand): number {
  return (
    channelParam.safeParse(param['Alarm'] ?? param['MdAlarm'] ?? param['WhiteLed'] ?? param).data?.channel ??
    0
  );
}

export async function readCommands(request: IncomingMessage): Promise<readonly SimCommand[]> {
  let text = '';
  request.setEncoding('utf8');
  for await (const chunk of request) text += String(chunk);
  return sentCommands.parse(JSON.parse(text));
}
