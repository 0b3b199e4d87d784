/** Sends commands to one host: in batches, in its session, one request at a time, with workarounds for its firmware. */
import { CommandRefused, DeviceRejected, DeviceUnreachable, notSent } from '../../../src/platform/errors.ts';
import type { LoginGuard } from '../../../src/toolkit/device/login-guard.ts';
import type { HttpReply, PinnedHttp } from '../../../src/toolkit/device/pinned-http.ts';
import { sleep } from '../../../src/platform/time.ts';
import { failureOf, type Fault, faultOf, GivenUp } from './rsp-codes.ts';
import type { Limits } from '../limits.ts';
import { type Command, faultIn, type Outcome, readReplies } from './replies.ts';
import { type SavedSession, Session, type SessionParts } from './session.ts';
import { texts } from '../texts.ts';
import { randomBytes } from 'node:crypto';
import { expectPicture } from '../../../src/toolkit/device/pictures/picture.ts';

export interface DeviceParts {
  readonly http: PinnedHttp;
  readonly username: string;
  readonly password: () => Promise<string>;
  readonly saved: SavedSession | undefined;
  readonly save: SessionParts['save'];
  readonly guard: LoginGuard;
  readonly limits: Limits;
  /** Ends the pauses between two attempts, and polls as soon as something else is to be sent. */
  readonly signal: AbortSignal;
}

interface OrderOptions {
  readonly urgency?: 'write' | 'urgent';
  readonly signal?: AbortSignal;
}

/** The interface is at one of these paths, depending on the firmware. */
const paths = ['/api.cgi', '/cgi-bin/api.cgi'] as const;
/** The web server of the device lost its connection to the rest of it; sometimes a new login helps. */
const bad_gateway = 502;

const not_offered = faultOf(-9, '');

export class Device {
  readonly session: Session;
  readonly #parts: DeviceParts;
  readonly #line: Line;
  /** Commands that make a batch fail, and until when they are left out. */
  readonly #spoilers = new Map<string, number>();
  #path: string = paths[0];
  /** It has given a reply of the interface at this path, in this connection. */
  #isPathProven = false;
  #no_login_until_ms = 0;

  constructor(parts: DeviceParts) {
    this.#parts = parts;
    this.#line = new Line(parts.limits, parts.signal);
    this.session = new Session({
      ...parts,
      send: async (command, token) =>
        (await this.#post([command], async () => token, { urgency: 'urgent' })).outcomes[0],
    });
  }

  /** Firmware may have changed: failed commands are tried again. */
  startAnew(): void {
    this.#spoilers.clear();
    this.#isPathProven = false;
  }

  close(): void {
    this.#parts.http.close();
  }

  /**
   * One outcome for each command, in order. A fault of one does not affect the others. Rejects when the host
   * does not answer or rejects the login. For queries only: they may be sent twice.
   */
  async ask(commands: readonly Command[]): Promise<readonly Outcome[]> {
    const wanted = commands.filter((command) => !this.#isSpoiler(command));
    const answers = new Map<Command, Outcome>();
    const { batch_commands_max } = this.#parts.limits;
    for (let at = 0; at < wanted.length; at += batch_commands_max) {
      await this.#askSome(wanted.slice(at, at + batch_commands_max), answers);
    }
    return commands.map((command) => answers.get(command) ?? { fault: not_offered });
  }

  /** The same for one query, which is sent once more when the device was not ready. */
  async askOne(command: Command): Promise<Outcome> {
    const first = await this.#exchange([command], 'read');
    if (faultIn(first[0])?.kind !== 'passing') return first[0] ?? { fault: not_offered };
    await sleep(this.#parts.limits.again_ms, this.#parts.signal);
    return (await this.#exchange([command], 'read'))[0] ?? { fault: not_offered };
  }

  /**
   * Sends a command that changes something, once, and not at all when `signal` aborts before its turn. After a rejection
   * it is unknown whether the device received it.
   */
  async order(command: Command, { urgency = 'write', signal }: OrderOptions = {}): Promise<Outcome> {
    const [outcome] = await this.#exchange([command], urgency, signal);
    if (!outcome) throw new DeviceUnreachable(texts.no_outcome);
    return outcome;
  }

  /** A picture of this channel, asked for once more when the device was not ready. Rejects when the device gives none. */
  async picture(channel: number, signal: AbortSignal, size: 'sub' | 'scaled' = 'sub'): Promise<Buffer> {
    let answer = await this.#picture(channel, signal, size);
    if (isOf(answer, 'passing')) await sleep(this.#parts.limits.again_ms, signal);
    if (isOf(answer, 'passing', 'session')) answer = await this.#picture(channel, signal, size);
    if (Buffer.isBuffer(answer)) return answer;
    throw pictureFailure(answer, this.#parts.limits);
  }

  /** Some firmware ignores that the picture of the sub stream was asked for (reolink_aio#64), and scales to a size. */
  async smallPicture(channel: number, bytes_max: number, signal: AbortSignal): Promise<Buffer> {
    const sub = await this.picture(channel, signal);
    return sub.length <= bytes_max ? sub : this.picture(channel, signal, 'scaled');
  }

  async #picture(channel: number, signal: AbortSignal, size: 'sub' | 'scaled'): Promise<Buffer | Fault> {
    const { http, limits } = this.#parts;
    const token = await this.session.token();
    const reply = await this.#line.take('read', async (giveUp) => {
      const within = { deadline_ms: limits.request_ms, signal: AbortSignal.any([giveUp, signal]) };
      return http.get(`${this.#path}${pictureQuery(channel, token, size)}`, within);
    });
    const answer = pictureIn(reply);
    if (isOf(answer, 'session')) this.session.forget(token);
    return answer;
  }

  /** The abandoned session stays open in the device: more than one an hour would use up its sessions. */
  #mayLoginAnew(): boolean {
    const now_ms = performance.now();
    if (now_ms < this.#no_login_until_ms) return false;
    this.#no_login_until_ms = now_ms + this.#parts.limits.lease_default_ms;
    return true;
  }

  #isSpoiler(command: Command): boolean {
    return performance.now() < (this.#spoilers.get(nameOf(command)) ?? 0);
  }

  async #askSome(commands: readonly Command[], answers: Map<Command, Outcome>): Promise<void> {
    const { limits, signal } = this.#parts;
    let outcomes = await this.#exchange(commands, 'read');
    if (outcomes.length !== commands.length && !isCollapsed(outcomes)) {
      await sleep(limits.busy_ms, signal);
      outcomes = await this.#exchange(commands, 'read');
    }
    if (outcomes.length === commands.length && !(commands.length > 1 && isTooMuch(outcomes))) {
      commands.forEach((command, index) => keep(command, outcomes[index], answers));
      return;
    }
    if (!isCollapsed(outcomes) && !isTooMuch(outcomes)) {
      throw new DeviceUnreachable(texts.answers_missing(outcomes.length, commands.length));
    }
    const middle = Math.ceil(commands.length / 2);
    for (const half of [commands.slice(0, middle), commands.slice(middle)]) {
      if (half.length === 1) await this.#askAlone(half[0], answers);
      else await this.#askSome(half, answers);
    }
  }

  /** The command that also fails alone made the batch fail. */
  async #askAlone(command: Command | undefined, answers: Map<Command, Outcome>): Promise<void> {
    if (!command) return;
    const [outcome] = await this.#exchange([command], 'read');
    if (spoils(outcome)) {
      this.#spoilers.set(nameOf(command), performance.now() + this.#parts.limits.spoiler_ms);
    }
    keep(command, outcome, answers);
  }

  /** Under the session; logs in once more when it was lost. */
  async #exchange(
    commands: readonly Command[],
    urgency: Urgency,
    signal?: AbortSignal,
  ): Promise<readonly Outcome[]> {
    const first = await this.#inSession(commands, urgency, signal);
    if (!first.isLost) return first.outcomes;
    const second = await this.#inSession(commands, urgency, signal);
    if (second.isLost) throw new DeviceUnreachable(texts.loses_sessions);
    return second.outcomes;
  }

  async #inSession(commands: readonly Command[], urgency: Urgency, signal?: AbortSignal) {
    let used = '';
    const reply = await this.#post(
      commands,
      async () => {
        used = await this.session.token();
        return used;
      },
      { urgency, signal },
    );
    const faults = reply.outcomes.map(faultIn).filter((fault) => fault !== undefined);
    const isLost = reply.isLost || faults.some(({ kind }) => kind === 'session');
    if (isLost && !reply.isLost) this.session.forget(used);
    const refusal = faults.find(({ kind }) => kind === 'credentials' || kind === 'privacy');
    if (refusal && !isLost && commands[0]?.cmd !== 'Login') {
      // The device accepted the login of this session.
      const { kind, sentence } = refusal;
      throw kind === 'credentials'
        ? new DeviceRejected(sentence, { may_pass: true })
        : failureOf(refusal, this.#parts.limits);
    }
    return { isLost, outcomes: reply.outcomes };
  }

  /** The token is requested before the line is reserved: the login needs the line itself. */
  async #post(
    commands: readonly Command[],
    tokenOf: () => Promise<string | undefined>,
    { urgency, signal }: { readonly urgency: Urgency; readonly signal?: AbortSignal | undefined },
  ): Promise<{ readonly isLost: boolean; readonly outcomes: readonly Outcome[] }> {
    const token = await tokenOf();
    const query = `?cmd=${commands[0]?.cmd ?? ''}&token=${encodeURIComponent(token ?? 'null')}`;
    const send = async (): Promise<HttpReply> =>
      this.#line.take(urgency, async (giveUp) => {
        if (signal?.aborted) throw new CommandRefused(notSent(texts.stopped_before));
        const { http, limits } = this.#parts;
        const within = { deadline_ms: limits.request_ms, signal: giveUp };
        return http.post(`${this.#path}${query}`, JSON.stringify(commands), within);
      });
    let reply = await send();
    if (!this.#isPathProven && isElsewhere(reply)) {
      this.#changePath();
      reply = await send();
      if (isElsewhere(reply)) throw new DeviceUnreachable(texts.no_interface(reply.status));
    }
    if (reply.status === 404) {
      this.#changePath();
      return { isLost: true, outcomes: [] };
    }
    // A command may have been executed nevertheless, and is not sent twice.
    const isQuestion = urgency === 'read' && token !== undefined;
    if (reply.status === bad_gateway && isQuestion && this.#mayLoginAnew()) {
      this.session.forget(token);
      return { isLost: true, outcomes: [] };
    }
    const outcomes = readReplies(bodyOf(reply));
    this.#isPathProven = true;
    return { isLost: false, outcomes };
  }

  #changePath(): void {
    this.#path = paths.find((path) => path !== this.#path) ?? this.#path;
  }
}

function isOf(answer: Buffer | Fault, ...kinds: readonly Fault['kind'][]): boolean {
  return !Buffer.isBuffer(answer) && kinds.includes(answer.kind);
}

/** The interface is not at this path: some firmware has its start page at every path that it does not know. */
function isElsewhere({ status, text }: HttpReply): boolean {
  return status === 404 || (status === 200 && text.trimStart().startsWith('<'));
}

function bodyOf({ status, text }: HttpReply): string {
  if (status === 200) return text;
  // The second is nginx's own page for a request without TLS to its port with TLS.
  const isPlain = (status >= 300 && status < 400) || /sent to HTTPS port/iu.test(text);
  throw new DeviceUnreachable(texts.http_status(status, isPlain ? texts.needs_https : ''));
}

function keep(command: Command, outcome: Outcome | undefined, answers: Map<Command, Outcome>): void {
  if (outcome) answers.set(command, outcome);
}

/** Some firmware answers a batch that contains one bad command with a single error. */
function isCollapsed(outcomes: readonly Outcome[]): boolean {
  return outcomes.length === 1 && faultIn(outcomes[0]) !== undefined;
}

function isTooMuch(outcomes: readonly Outcome[]): boolean {
  return outcomes.length > 0 && outcomes.every((outcome) => faultIn(outcome)?.kind === 'too_large');
}

const spoiling_codes: ReadonlySet<number> = new Set([-8, -9, -10]);

function spoils(outcome: Outcome | undefined): boolean {
  const fault = faultIn(outcome);
  return fault !== undefined && spoiling_codes.has(fault.code);
}

function nameOf({ cmd, param }: Command): string {
  return `${cmd} ${JSON.stringify(param ?? {})}`;
}

// Takes a picture of one channel: `Snap` of the vendor's HTTP API guide, a GET whose answer is a JPEG or an error as JSON.

/** `rs` keeps answers out of caches. The sub stream is small enough for slow links. */
export function pictureQuery(channel: number, token: string, size: 'sub' | 'scaled'): string {
  const rs = randomBytes(8).toString('hex');
  const scaled = size === 'scaled' ? '&width=640&height=480' : '';
  return `?cmd=Snap&channel=${channel}&snapType=sub${scaled}&rs=${rs}&token=${encodeURIComponent(token)}`;
}

/** Returns the picture, or the fault that the device answers; throws `DeviceUnreachable` for anything else. */
export function pictureIn({ status, bytes, text, type }: HttpReply): Buffer | Fault {
  if (status !== 200) throw new DeviceUnreachable(texts.picture_status(status));
  const isError = bytes[0] === '['.charCodeAt(0);
  const fault = isError ? faultIn(readReplies(text)[0]) : undefined;
  return fault ?? expectPicture(bytes, type);
}

/** For the operator. */
export function pictureFailure(fault: Fault, limits: Limits): Error {
  if (fault.text === texts.code_camera_part) {
    return new DeviceUnreachable(`${fault.sentence}; ${texts.picture_firmware}`);
  }
  return fault.kind === 'credentials' ? new DeviceUnreachable(fault.sentence) : failureOf(fault, limits);
}

// Sends one request at a time to a host; a Stop precedes all others and does not wait long for a poll.

/** `read` may be cancelled for an urgent request; `write` never is. */
type Urgency = 'read' | 'write' | 'urgent';

interface Turn {
  readonly urgency: Urgency;
  readonly giveUp: AbortController;
}

interface Waiting {
  readonly turn: Turn;
  readonly begin: () => void;
}

export class Line {
  readonly #limits: Pick<Limits, 'waiting_max' | 'urgent_wait_ms'>;
  readonly #stopping: AbortSignal;
  readonly #waiting: Waiting[] = [];
  #under_way: Turn | undefined;

  /** `stopping`: the driver ends; answers to polls are no longer needed. */
  constructor(limits: Pick<Limits, 'waiting_max' | 'urgent_wait_ms'>, stopping: AbortSignal) {
    this.#limits = limits;
    this.#stopping = stopping;
  }

  /** Runs `work` in its turn. Its signal aborts when an urgent request needs the line. */
  async take<T>(urgency: Urgency, work: (giveUp: AbortSignal) => Promise<T>): Promise<T> {
    const { giveUp } = await this.#turn(urgency);
    try {
      return await work(giveUp.signal);
    } finally {
      // The next request is reserved now, so that no other one can start before it.
      const next = this.#waiting.shift();
      this.#under_way = next?.turn;
      giveUp.abort();
      next?.begin();
    }
  }

  async #turn(urgency: Urgency): Promise<Turn> {
    const turn: Turn = { urgency, giveUp: new AbortController() };
    if (!this.#under_way) {
      this.#under_way = turn;
      return turn;
    }
    if (urgency !== 'urgent' && this.#waiting.length >= this.#limits.waiting_max) {
      throw new DeviceUnreachable(texts.queue_full);
    }
    const begun = Promise.withResolvers<void>();
    const waiting = { turn, begin: begun.resolve };
    if (urgency === 'urgent') {
      const before = this.#waiting.filter((each) => each.turn.urgency === 'urgent').length;
      this.#waiting.splice(before, 0, waiting);
      void this.#hurry();
    } else {
      this.#waiting.push(waiting);
    }
    await begun.promise;
    return turn;
  }

  async #hurry(): Promise<void> {
    const current = this.#under_way;
    if (current?.urgency !== 'read') return;
    await sleep(this.#limits.urgent_wait_ms, AbortSignal.any([current.giveUp.signal, this.#stopping]));
    current.giveUp.abort(new GivenUp(texts.gave_way));
  }
}
