/**
 * One WebSocket of a client: authentication, limits, heartbeats and back-pressure. What it sends is decided by `Served`. A slow
 * reader gets the newest value of each thing, never a queue of old ones.
 */
import type { WebSocket } from 'ws';
import { readJson, request_limits } from '../../contract/bounded-json.ts';
import { every, turn } from '../../platform/time.ts';
import { closeCodes } from '../api/frames.ts';
import type { Asker, Gate } from '../access/gate.ts';
import type { Principal } from '../principal.ts';
import type { Scope } from '../scopes.ts';
import { texts } from '../texts.ts';

export const heartbeat_ms = 5_000;
const auth_deadline_ms = 5_000;
/** Beyond this nothing is sent until the reader has caught up. */
const buffered_bytes_max = 256 * 1024;
const catch_up_ms = 100;
/** Frames of a client within a second. */
const frames_per_s_max = 20;

export interface SessionParts {
  readonly gate: Gate;
  readonly asker: Asker;
  /** Known from the handshake; undefined: the first frame must authenticate. */
  readonly principal: Principal | undefined;
  /** Called when the first frame has authenticated; returns whether the key may have one more socket. Left out: it may. */
  readonly onKnown?: (principal: Principal) => boolean;
  /** Aborts when the service stops. */
  readonly signal: AbortSignal;
}

/** What a frame of the client asks for; undefined: it is not valid. */
type Request =
  | { readonly type: 'auth'; readonly api_key: string }
  | { readonly type: 'ping' }
  | { readonly type: 'subscribe'; readonly apply: () => void };

export interface Served {
  readonly read: (frame: unknown) => Request | undefined;
  /** Whether the holder of the key may use this socket; `read` is checked besides. */
  readonly isOpenTo: (principal: Principal) => Promise<boolean>;
  readonly isDue: () => boolean;
  /** Sends the next due thing, if there is one. Rejects when the database does not answer. */
  readonly writeNext: () => Promise<void>;
}

export class SocketSession {
  readonly #socket: WebSocket;
  readonly #parts: SessionParts;
  readonly #served: Served;
  readonly #closed = new AbortController();
  readonly #reading: Reading;
  #principal: Principal | undefined;
  #isPumping = false;
  #catching_up: NodeJS.Timeout | undefined;
  #frames_in_s = 0;
  /** The newest subscription that was asked for; those before it that were not begun are forgotten. */
  #asked: (() => void) | undefined;
  #last_frame: Promise<void> = Promise.resolve();
  #seq = 0;

  constructor(socket: WebSocket, parts: SessionParts, served: Served) {
    this.#socket = socket;
    this.#parts = parts;
    this.#served = served;
    this.#principal = parts.principal;
    this.#reading = new Reading((payload) => this.#sendPing(payload));
  }

  /** Aborts when the socket is closed, by either side. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  get principal(): Principal | undefined {
    return this.#principal;
  }

  start(): void {
    const ends = this.#closed.signal;
    const stop = (): void => this.#socket.close(1001, 'service stopping');
    this.#parts.signal.addEventListener('abort', stop, { once: true, signal: ends });
    this.#socket.on('close', () => {
      clearTimeout(this.#catching_up);
      this.#closed.abort();
    });
    this.#socket.on('error', () => this.#socket.terminate());
    this.#socket.on('pong', (payload) => {
      this.#reading.ponged(payload.toString('latin1'));
      void this.pump();
    });
    this.#socket.on('message', (raw, isBinary) => this.#receive(isBinary ? undefined : textOf(raw)));
    every(heartbeat_ms, ends, () => void this.#beat());
    every(1_000, ends, () => {
      this.#frames_in_s = 0;
    });
    if (!this.#principal) {
      const timer = setTimeout(() => {
        if (!this.#principal) this.#socket.close(closeCodes.silent, 'authentication timed out');
      }, auth_deadline_ms);
      ends.addEventListener('abort', () => clearTimeout(timer), { once: true });
    }
  }

  /** Sends what is due, one thing after the other, while the reader keeps up. */
  async pump(): Promise<void> {
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      while (!this.#closed.signal.aborted && (this.#asked || this.#served.isDue())) {
        if (this.#isBehind) {
          this.#pumpLater();
          return;
        }
        this.#subscribe();
        await this.#served.writeNext();
      }
    } catch {
      // Without the database there is nothing to send: the client reconnects later.
      this.#socket.close(1013, 'try again later');
    } finally {
      this.#isPumping = false;
    }
  }

  /** Every change calls `pump`, thousands while a reader is slow: they wait for one timer. */
  #pumpLater(): void {
    this.#catching_up ??= setTimeout(() => {
      this.#catching_up = undefined;
      void this.pump();
    }, catch_up_ms);
  }

  #subscribe(): void {
    const asked = this.#asked;
    this.#asked = undefined;
    asked?.();
  }

  /** Sends a frame with the next number. */
  send({ type, ...rest }: { readonly type: string; readonly [field: string]: unknown }): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    const stamp = { seq: this.#seq, time: new Date().toISOString() };
    this.#seq += 1;
    const text = JSON.stringify({ type, ...stamp, ...rest });
    this.#socket.send(text);
    this.#reading.sent(text.length);
  }

  /** Whether the reader has to catch up before it is sent more. */
  get #isBehind(): boolean {
    return this.#reading.isBehind || this.#socket.bufferedAmount > buffered_bytes_max;
  }

  #sendPing(payload: string): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.ping(payload);
  }

  /** Closes the socket as one of a key that may not do this. */
  forbid(reason: string): void {
    this.#socket.close(closeCodes.forbidden, reason);
  }

  /** Processes frames in order: a subscription waits for the key before it. */
  #receive(text: string | undefined): void {
    this.#frames_in_s += 1;
    if (this.#frames_in_s > frames_per_s_max) this.#socket.close(closeCodes.too_fast, 'too many frames');
    else this.#last_frame = this.#last_frame.then(async () => this.#take(text));
  }

  async #take(text: string | undefined): Promise<void> {
    const request = this.#read(text);
    if (!request) {
      this.#socket.close(closeCodes.bad_frame, 'invalid frame');
    } else if (request.type === 'auth') {
      await this.#authenticate(request.api_key);
    } else if (!this.#principal) {
      this.#socket.close(closeCodes.unauthorised, 'the first frame must be auth');
    } else if (request.type === 'subscribe') {
      this.#asked = request.apply;
      void this.pump();
    } else {
      this.#sendHeartbeat();
    }
  }

  #read(text: string | undefined): Request | undefined {
    if (text === undefined) return undefined;
    try {
      return this.#served.read(readJson(text, request_limits));
    } catch {
      return undefined;
    }
  }

  async #authenticate(api_key: string): Promise<void> {
    const { gate, asker } = this.#parts;
    try {
      const principal = await gate.byKey(api_key, asker);
      const mayRead =
        principal.scopes.includes('read' satisfies Scope) && (await this.#served.isOpenTo(principal));
      if (!mayRead) {
        this.forbid('kit not found');
        return;
      }
      if (this.#parts.onKnown?.(principal) === false) {
        this.#socket.close(closeCodes.too_fast, texts.too_many_sockets);
        return;
      }
      this.#principal = principal;
    } catch {
      this.#socket.close(closeCodes.unauthorised, 'invalid key');
    }
  }

  /** Adds nothing to the send queue of a client that does not read: 20 requests a second would fill the memory. */
  #sendHeartbeat(): void {
    if (!this.#isBehind) this.send({ type: 'heartbeat' });
  }

  async #beat(): Promise<void> {
    // After a stall of this process timers come before sockets: the pong may have arrived meanwhile.
    await turn();
    if (this.#reading.beat()) {
      this.#socket.terminate();
      return;
    }
    if (!this.#principal) return;
    this.#sendHeartbeat();
    void this.#recheck(this.#principal);
  }

  /** Closes the socket when its key was revoked or its session has ended. */
  async #recheck(principal: Principal): Promise<void> {
    const { gate, asker } = this.#parts;
    const isKnown = await gate.isStillKnown(principal, asker).catch(() => true);
    if (!isKnown) this.#socket.close(closeCodes.unauthorised, 'key revoked or session expired');
  }
}

function textOf(raw: Buffer | ArrayBuffer | Buffer[]): string {
  if (Array.isArray(raw)) return Buffer.concat(raw).toString('utf8');
  return Buffer.isBuffer(raw) ? raw.toString('utf8') : Buffer.from(raw).toString('utf8');
}

/** Characters after which a ping is sent between two heartbeats. */
const ping_every_chars = 16 * 1024;
/** Characters that a client may be behind; beyond this nothing is sent until it has caught up. */
export const behind_chars_max = 128 * 1024;
/** Heartbeats without a pong that a client has for this much of what it has to read first; one is always allowed. */
const chars_per_beat_min = ping_every_chars;
/** Of one frame of any size: two minutes. */
const silent_beats_max = 24;

/**
 * How far a client has read: each pong names what was sent before its ping. The buffers of both sides may hold megabytes that a slow
 * client has not read, so neither what this side still holds nor the time until a pong shows whether it reads.
 */
export class Reading {
  readonly #ping: (payload: string) => void;
  #sent_chars = 0;
  #pinged_chars = 0;
  #read_chars = 0;
  /** Heartbeats since the last pong. */
  #silent_beats = 0;

  /** `ping` sends a ping behind what was sent before. */
  constructor(ping: (payload: string) => void) {
    this.#ping = ping;
  }

  get isBehind(): boolean {
    return this.#behind_chars > behind_chars_max;
  }

  /** To be called when a frame was sent. */
  sent(chars: number): void {
    this.#sent_chars += chars;
    if (this.#sent_chars - this.#pinged_chars >= ping_every_chars) this.#sendPing();
  }

  ponged(payload: string): void {
    const read_chars = /^\d{1,15}$/u.test(payload) ? Number(payload) : 0;
    if (read_chars <= this.#sent_chars) this.#read_chars = Math.max(this.#read_chars, read_chars);
    this.#silent_beats = 0;
  }

  /** Sends a ping, and returns whether the client is dead: it has read nothing for longer than the least rate needs. */
  beat(): boolean {
    const allowed = Math.min(1 + Math.floor(this.#behind_chars / chars_per_beat_min), silent_beats_max);
    if (this.#silent_beats >= allowed) return true;
    this.#silent_beats += 1;
    this.#sendPing();
    return false;
  }

  #sendPing(): void {
    this.#pinged_chars = this.#sent_chars;
    this.#ping(String(this.#sent_chars));
  }

  get #behind_chars(): number {
    return this.#sent_chars - this.#read_chars;
  }
}
