/** A vendor camera or recorder on the loopback: HTTP or HTTPS, sessions, channels, and every misbehaviour on command. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SecureContextOptions } from 'node:tls';
import { channelOf, SimHost, type SimHostOptions } from '../../drivers/vendorcam/sim/sim-host.ts';
import { errorReply, type SimCommand, type SimReply } from '../../drivers/vendorcam/sim/channel.ts';
import { sleep } from '../../src/platform/time.ts';
import { freePort } from '../support/ports.ts';

export interface FakeFile {
  readonly type: string;
  readonly bytes: Buffer;
}

/** Certificate, and the versions of TLS that it has. */
export type FakeTls = Pick<SecureContextOptions, 'minVersion' | 'maxVersion' | 'ciphers'> & {
  readonly cert: string;
  readonly key: string;
};

export interface FakeVendorCameraOptions extends SimHostOptions {
  /** PEM; plain HTTP without it. */
  readonly tls?: FakeTls;
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

export class FakeVendorCamera extends SimHost {
  mood: Mood = 'well';
  /** Commands answered with this error, by name or by name and channel (`GetMdState 1`), so many times. */
  readonly errors = new Map<string, { code: number; detail?: string; times: number }>();
  /** Commands that make a whole batch fail. */
  readonly spoilers = new Set<string>();
  rebootEffect: 'restarts' | 'nothing' | 'restarts unanswered' = 'restarts';
  away_ms = 300;
  /** Everything that was asked, in order. */
  readonly asked: SimCommand[] = [];
  requests = 0;
  /** Requests under way at once, at most. */
  busiest = 0;
  #busy = 0;

  constructor({ tls, ...options }: FakeVendorCameraOptions = {}) {
    super(options);
    this.tls = tls;
  }

  /** How often this command was asked. */
  count(cmd: string): number {
    return this.asked.filter((each) => each.cmd === cmd).length;
  }

  /** Listens, after `lose` on the same port again. */
  async start(): Promise<void> {
    await this.listen(this.port || (await freePort()));
  }

  /** Another device, or the same after a factory reset. */
  showCertificate(tls: FakeTls): void {
    this.tls = tls;
  }

  protected override async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests += 1;
    this.#busy += 1;
    this.busiest = Math.max(this.busiest, this.#busy);
    response.once('close', () => {
      this.#busy -= 1;
    });
    await super.serve(request, response);
  }

  /** What it sends in place of its picture, but for one of a given width. */
  file: FakeFile | undefined;

  protected override async servePicture(asked: URLSearchParams, response: ServerResponse): Promise<void> {
    const { file } = this;
    if (!file || asked.has('width')) return super.servePicture(asked, response);
    response.writeHead(200, { 'content-type': file.type }).end(file.bytes);
    return undefined;
  }

  protected override answer(asked: readonly SimCommand[], token: string | null): readonly SimReply[] {
    this.asked.push(...asked);
    return super.answer(asked, token);
  }

  protected override answerAll(asked: readonly SimCommand[]): readonly SimReply[] {
    const isSpoiled = asked.some(({ cmd }) => this.spoilers.has(cmd));
    return isSpoiled ? [errorReply('Unknown', -10, 'protocol')] : super.answerAll(asked);
  }

  protected override answerOne(command: SimCommand): SimReply {
    const { cmd } = command;
    const error = this.errors.get(`${cmd} ${channelOf(command)}`) ?? this.errors.get(cmd);
    if (error && error.times > 0) {
      error.times -= 1;
      return errorReply(cmd, error.code, error.detail ?? '');
    }
    return super.answerOne(command);
  }

  async #restart(): Promise<void> {
    await this.lose();
    this.sessions.forgetAll();
    await sleep(this.away_ms, this.signal);
    if (!this.signal.aborted) await this.start();
  }

  /** Restarts where the replies were to a Reboot. */
  protected override async send(response: ServerResponse, replies: readonly SimReply[]): Promise<void> {
    const isReboot = replies[0]?.['cmd'] === 'Reboot' && replies[0]['code'] === 0;
    if (isReboot && this.rebootEffect === 'restarts unanswered') return this.#restart();
    await this.#sendInMood(response, replies);
    if (isReboot && this.rebootEffect === 'restarts') await this.#restart();
    return undefined;
  }

  async #sendInMood(response: ServerResponse, replies: readonly SimReply[]): Promise<void> {
    const isLogin = replies[0]?.['cmd'] === 'Login';
    await sendIn[isLogin ? 'well' : this.mood](response, replies, this.signal);
  }
}

type Send = (
  response: ServerResponse,
  replies: readonly SimReply[],
  signal: AbortSignal,
) => Promise<void> | void;

/** The head of an answer. The real ones call it HTML. */
function begin(response: ServerResponse): ServerResponse {
  return response.writeHead(200, { 'content-type': 'text/html' });
}

const sendIn: Readonly<Record<Mood, Send>> = {
  well: (response, replies) => {
    begin(response).end(JSON.stringify(replies));
  },
  hangs: () => undefined,
  garbage: (response) => {
    begin(response).end('<html>busy</html>');
  },
  'not UTF-8': (response, replies) => {
    const text = JSON.stringify(replies).replace(/\}\]$/u, ',"x":"');
    begin(response).end(Buffer.concat([Buffer.from(text), Buffer.from([0xff, 0xfe]), Buffer.from('"}]')]));
  },
  'cuts off': (response, replies) => {
    begin(response).write(JSON.stringify(replies).slice(0, 5));
    response.destroy();
  },
  'bad gateway': (response) => {
    response.writeHead(502).end();
  },
  redirects: (response) => {
    response.writeHead(302, { location: 'https://camera/' }).end();
  },
  'too short': (response, replies) => {
    begin(response).end(JSON.stringify(replies.slice(0, -1)));
  },
  drips: async (response, replies, signal) => {
    begin(response);
    for (const letter of JSON.stringify(replies)) {
      response.write(letter);
      await sleep(drip_ms, signal);
      if (response.destroyed || signal.aborted) return;
    }
    response.end();
  },
  slow: async (response, replies, signal) => {
    await sleep(slow_ms, signal);
    begin(response).end(JSON.stringify(replies));
  },
};
