/** Measures one direction with several connections at once, within its limits of data and time. */
import { randomBytes } from 'node:crypto';
import { Agent, type IncomingMessage, request as httpRequest } from 'node:http';
import type { Socket } from 'node:net';
import { finished } from 'node:stream/promises';
import { CommandRefused, messageOf } from '../../src/platform/errors.ts';
import { reasonOf } from '../../src/platform/linux/bound-fd.ts';
import { every, sleep } from '../../src/platform/time.ts';
import { descriptorOf, unsentBytes } from '../../src/platform/linux/unsent-bytes.ts';
import { type Connection, openConnection, type Target } from './connection.ts';
import { texts } from './texts.ts';
import { silenceSince } from '../../src/platform/stalls.ts';

interface Limits {
  readonly bytes_max: number;
  readonly ms_max: number;
}

const bits_per_megabit_ms = 1_000;

class Tally {
  readonly #limits: Limits;
  readonly #begin_ms = performance.now();
  #bytes = 0;
  #reserved = 0;
  /** What came with the first piece was under way before the clock of the rate began to run. */
  #first: { readonly at_ms: number; readonly bytes: number } | undefined;
  #last_ms = performance.now();

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(bytes: number): void {
    this.#last_ms = performance.now();
    this.#bytes += bytes;
    this.#first ??= { at_ms: this.#last_ms, bytes };
  }

  /** Sets bytes aside that are about to be sent: `wanted` or what is left; 0 when the limits are reached. */
  reserve(wanted: number): number {
    const bytes = this.isSpent() ? 0 : Math.min(wanted, this.#limits.bytes_max - this.#reserved);
    this.#reserved += bytes;
    return bytes;
  }

  /** They were not taken. */
  release(bytes: number): void {
    this.#reserved -= bytes;
  }

  /** Time without a sign of life, milliseconds. */
  silence_ms(): number {
    return silenceSince(this.#last_ms);
  }

  /** Whether the data or the time are used up. */
  isSpent(): boolean {
    const { bytes_max, ms_max } = this.#limits;
    return this.#bytes >= bytes_max || performance.now() - this.#begin_ms >= ms_max;
  }

  /** 0 to 100, by whichever limit is nearer. */
  pct(): number {
    const { bytes_max, ms_max } = this.#limits;
    const share = Math.max(this.#bytes / bytes_max, (performance.now() - this.#begin_ms) / ms_max);
    return Math.min(100, Math.round(share * 100));
  }

  /** Megabits per second from the first sign of life to the last; null before there are two. */
  mbps(): number | null {
    if (!this.#first) return null;
    const [bytes, ms] = [this.#bytes - this.#first.bytes, this.#last_ms - this.#first.at_ms];
    if (bytes <= 0 || ms <= 0) return null;
    return Math.round(((bytes * 8) / ms / bits_per_megabit_ms) * 100) / 100;
  }
}

/** Nothing moves for so long: the test is over. */
const stall_ms = 10_000;
const look_every_ms = 250;
/** Less is over before the connection has found its pace. */
const bytes_min = 100_000;

interface Plan {
  readonly direction: 'download' | 'upload';
  readonly target: Target;
  readonly connections: number;
  readonly limits: Limits;
  readonly signal: AbortSignal;
  readonly progress: (message: string, pct: number) => void;
}

export interface Measured {
  readonly mbps: number;
  readonly bytes: number;
}

/** Resolves with the rate; throws `CommandRefused` when there is none. Leaves no connection behind in either case. */
export async function measure(plan: Plan): Promise<Measured> {
  const { direction, target, connections, limits, progress } = plan;
  const stop = new AbortController();
  const signal = AbortSignal.any([plan.signal, stop.signal]);
  let stalled = false;
  try {
    const open = async (): Promise<Connection> => openConnection(target, signal);
    const opened = await Promise.all(Array.from({ length: connections }, open));
    const { count: countUnsent } = await unsentBytes();
    const share_bytes = limits.bytes_max / connections;
    const tally = new Tally(limits);
    progress(direction, 0);
    every(look_every_ms, signal, () => {
      const so_far = tally.mbps();
      progress(so_far === null ? direction : `${direction} ${so_far} Mbit/s`, tally.pct());
      stalled = tally.silence_ms() > stall_ms;
      if (stalled) stop.abort();
    });
    const move = direction === 'download' ? download : upload;
    const moves = opened.map(async (first) =>
      move(new Channel(first, { open, countUnsent, signal }), { url: target.url, share_bytes }, tally),
    );
    // What is under way when the time is over is cut off, and does not count.
    await Promise.race([Promise.all(moves), sleep(limits.ms_max, signal)]);
    const [mbps, { bytes }] = [tally.mbps(), tally];
    if (signal.aborted) throw new CommandRefused(texts.stopped);
    if (mbps === null || bytes < Math.min(bytes_min, limits.bytes_max))
      throw new CommandRefused(tooLittle(plan, bytes));
    return { mbps, bytes };
  } catch (error) {
    if (plan.signal.aborted) throw new CommandRefused(texts.stopped_unrecorded);
    const reason = stalled ? texts.stalled(stall_ms / 1_000) : wordsOf(error);
    throw new CommandRefused(texts.failed(direction, target.device, reason), { cause: error });
  } finally {
    stop.abort();
  }
}

/** Node's words for a connection that ends ("socket hang up", "read ECONNRESET") are no sentences. */
function wordsOf(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : undefined;
  if (code === 'ECONNRESET' || code === 'EPIPE') return texts.server_closed;
  const words = code === undefined ? undefined : reasonOf(code);
  return words === undefined || words === code ? messageOf(error) : words;
}

function tooLittle({ direction, target, limits }: Plan, bytes: number): string {
  const [seconds, { host }] = [limits.ms_max / 1_000, target.url];
  return direction === 'download'
    ? texts.too_little(bytes, seconds, host)
    : texts.too_little_taken(bytes, seconds, host);
}

/** The first POST is small, so that it is answered in time on a slow link; the next ones shall take about this long. */
const post_bytes_first = 16_384;
const post_bytes_max = 4_194_304;
const post_growth_max = 4;
const post_ms = 2_000;
/** Random, so that nothing on the way makes it smaller. */
const pool = randomBytes(post_bytes_max);

const headers = { 'user-agent': 'kit-connector', accept: '*/*', 'accept-encoding': 'identity' } as const;

/** A shorter file takes a round trip and little else: read again and again, it would measure the delay. */
const file_bytes_min = 65_536;

interface Work {
  readonly url: URL;
  /** Of this connection, of the limit. */
  readonly share_bytes: number;
}

/** Reads until the tally is spent, a file that ends before its share again. Throws `CommandRefused` for an answer that is none. */
async function download(channel: Channel, { url, share_bytes }: Work, tally: Tally): Promise<void> {
  for (let [file_bytes, bytes] = [file_bytes_min, 0]; file_bytes >= file_bytes_min && bytes < share_bytes;) {
    const response = await channel.ask(url);
    check(response, url);
    file_bytes = 0;
    for await (const chunk of response) {
      const length = Buffer.isBuffer(chunk) ? chunk.length : 0;
      file_bytes += length;
      tally.add(length);
      if (tally.isSpent()) return;
    }
    bytes += file_bytes;
  }
}

/**
 * Posts one body after the other until the tally is spent. A body counts once it was answered and has left: what was only written
 * may still lie in the buffers of this machine, which hold seconds on a slow link.
 */
async function upload(channel: Channel, { url }: Work, tally: Tally): Promise<void> {
  let [wanted, accepted, limit] = [post_bytes_first, 0, post_bytes_max];
  for (;;) {
    const bytes = tally.reserve(Math.min(wanted, limit));
    if (bytes === 0) return;
    const begin_ms = performance.now();
    if (await isTaken(channel, url, { body: pool.subarray(0, bytes), accepted })) {
      tally.add(bytes);
      accepted = Math.max(accepted, bytes);
      wanted = nextSize(bytes, performance.now() - begin_ms);
    } else {
      tally.release(bytes);
      limit = accepted;
    }
  }
}

const payload_too_large = 413;
const connection_ended: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE']);

/** False: the server takes no body of this size, but has taken smaller ones. */
async function isTaken(
  channel: Channel,
  url: URL,
  { body, accepted }: { readonly body: Uint8Array; readonly accepted: number },
): Promise<boolean> {
  const isLarger = accepted > 0 && body.length > accepted;
  try {
    const response = await channel.ask(url, body);
    response.resume();
    if (isLarger && response.statusCode === payload_too_large) return false;
    check(response, url);
    await finished(response);
    await channel.drain();
    return true;
  } catch (error) {
    // A web server ends the connection while a body that is too large is still on its way.
    const isEnded = error instanceof Error && 'code' in error && connection_ended.has(error.code);
    if (isLarger && isEnded) return false;
    throw error;
  }
}

const drain_look_ms = 20;

interface Around {
  readonly open: () => Promise<Connection>;
  readonly countUnsent: (fd: number) => number;
  readonly signal: AbortSignal;
}

/** Requests one after the other over one connection, and over another one where the server has ended it. */
class Channel {
  readonly #around: Around;
  #connection: Connection;
  #agent: Agent;
  #isOver = false;

  constructor(first: Connection, around: Around) {
    this.#around = around;
    this.#connection = first;
    this.#agent = agentOf(first.socket);
  }

  async ask(url: URL, body?: Uint8Array): Promise<IncomingMessage> {
    if (this.#isOver || this.#connection.socket.destroyed) {
      this.#connection.socket.destroy();
      this.#connection = await this.#around.open();
      this.#agent = agentOf(this.#connection.socket);
    }
    this.#isOver = true;
    const response = await ask(this.#agent, url, body);
    const { connection = response.httpVersion === '1.0' ? 'close' : '' } = response.headers;
    this.#isOver = connection.toLowerCase() === 'close';
    return response;
  }

  /** Resolves when all that was written was acknowledged: some servers answer before they have read a body (librespeed/speedtest#819). */
  async drain(): Promise<void> {
    const { socket, tcp } = this.#connection;
    const fd = descriptorOf(tcp);
    const { countUnsent, signal } = this.#around;
    if (fd === null) return;
    while (!socket.destroyed && (socket.writableLength > 0 || countUnsent(fd) > 0))
      await sleep(drain_look_ms, signal);
  }
}

function nextSize(bytes: number, took_ms: number): number {
  const growth = Math.min(post_growth_max, post_ms / Math.max(1, took_ms));
  return Math.round(Math.min(post_bytes_max, Math.max(post_bytes_first, bytes * growth)));
}

/** All requests go over this one connection, one after the other. */
function agentOf(socket: Socket): Agent {
  return Object.assign(new Agent({ keepAlive: true, maxSockets: 1 }), { createConnection: () => socket });
}

/** GET, or POST of the body. */
async function ask(agent: Agent, url: URL, body?: Uint8Array): Promise<IncomingMessage> {
  const about = body ? { 'content-type': 'application/octet-stream', 'content-length': body.length } : {};
  const request = httpRequest({
    agent,
    method: body ? 'POST' : 'GET',
    path: url.pathname + url.search,
    headers: { ...headers, host: url.host, ...about },
  });
  return new Promise((resolve, reject) => {
    request.once('response', resolve);
    request.on('error', reject);
    request.once('close', () =>
      reject(Object.assign(new Error(texts.server_closed), { code: 'ECONNRESET' })),
    );
    request.end(body);
  });
}

/** A redirect is not followed: it could lead over another link, to another server, or out of TLS. */
function check(response: IncomingMessage, url: URL): void {
  const { statusCode = 0, headers } = response;
  if (statusCode >= 200 && statusCode < 300) return;
  response.destroy();
  const where = statusCode >= 300 && statusCode < 400 ? ` to ${(headers.location ?? '?').slice(0, 200)}` : '';
  const remedy = where === '' ? '' : texts.use_redirect;
  throw new CommandRefused(texts.http_status(url.host, statusCode, where) + remedy);
}
