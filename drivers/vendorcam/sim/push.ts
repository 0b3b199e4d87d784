/** The port for events of a simulated vendor camera: login with a nonce, subscription, alarms of its channels as they change. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { every } from '../../../src/platform/time.ts';
import { aesDecrypt, aesEncrypt, aesKey, hashOf, textIn, xor } from '../push/cipher.ts';
import { classes, commands, type Frame, frameBytes, FrameReader } from '../push/wire.ts';
import type { SimChannel } from './channel.ts';
import type { SimSessions } from './sessions.ts';

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
export function alarmsOf(channels: readonly SimChannel[]): string {
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
