/** One WebSocket of a client for one kit. A slow reader gets the newest value of each thing, never a queue of old ones. */
import type { WebSocket } from 'ws';
import { readJson, request_limits } from '../../contract/bounded-json.ts';
import { every } from '../../platform/time.ts';
import { type ClientFrame, clientFrame, closeCodes } from '../api/frames.ts';
import type { Changes } from './changes.ts';
import type { Asker, Gate } from '../access/gate.ts';
import { maySee, type Principal, type Scope } from '../access/principal.ts';
import type { Change, Store } from '../store/store.ts';
import { turnsAt } from '../api/views.ts';
import { type FrameBody, framesOf, keyOf, snapshotOf } from './snapshot.ts';

export const heartbeat_ms = 5_000;
const auth_deadline_ms = 5_000;
/** Beyond this nothing is sent until the reader has caught up. */
const buffered_bytes_max = 256 * 1024;
const catch_up_ms = 100;
/** Minimum interval of timed updates, for a clock that was set so that they would follow at once. */
const turn_ms_min = 250;
/** Frames of a client within a second. */
const frames_per_s_max = 20;

export interface LiveParts {
  readonly kit_id: string;
  readonly store: Store;
  readonly changes: Changes;
  readonly gate: Gate;
  readonly asker: Asker;
  /** Known from the handshake; undefined: the first frame must authenticate. */
  readonly principal: Principal | undefined;
  /** Aborts when the service stops. */
  readonly signal: AbortSignal;
}

/** Serves the socket until it is closed, by either side. */
export function serveSocket(socket: WebSocket, parts: LiveParts): void {
  const live = new LiveSocket(socket, parts);
  live.start();
}

class LiveSocket {
  readonly #socket: WebSocket;
  readonly #parts: LiveParts;
  readonly #closed = new AbortController();
  readonly #pending = new Map<string, Change>();
  #principal: Principal | undefined;
  /** Undefined: nothing was subscribed yet. */
  #wanted: ReadonlySet<string> | '*' | undefined;
  #snapshot_due = false;
  #isPumping = false;
  #isAlive = true;
  #frames_in_s = 0;
  #last_frame: Promise<void> = Promise.resolve();
  #seq = 0;
  /** Sends the kit again when it times out or its fix becomes stale, since no message triggers that. */
  #turn: NodeJS.Timeout | undefined;

  constructor(socket: WebSocket, parts: LiveParts) {
    this.#socket = socket;
    this.#parts = parts;
    this.#principal = parts.principal;
  }

  start(): void {
    const { kit_id, changes, signal } = this.#parts;
    const ends = this.#closed.signal;
    const stop = (): void => this.#socket.close(1001, 'service stopping');
    signal.addEventListener('abort', stop, { once: true, signal: ends });
    this.#socket.on('close', () => this.#closed.abort());
    ends.addEventListener('abort', () => clearTimeout(this.#turn), { once: true });
    this.#socket.on('error', () => this.#socket.terminate());
    this.#socket.on('pong', () => {
      this.#isAlive = true;
    });
    this.#socket.on('message', (raw, isBinary) => this.#receive(isBinary ? undefined : textOf(raw)));
    changes.subscribe(kit_id, (news) => this.#note(news), ends);
    every(heartbeat_ms, ends, () => this.#beat());
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

  /** Processes frames in order: a subscription waits for the key before it. */
  #receive(text: string | undefined): void {
    this.#frames_in_s += 1;
    if (this.#frames_in_s > frames_per_s_max) this.#socket.close(closeCodes.too_fast, 'too many frames');
    else this.#last_frame = this.#last_frame.then(async () => this.#take(text));
  }

  async #take(text: string | undefined): Promise<void> {
    const frame = readFrame(text);
    if (!frame) {
      this.#socket.close(closeCodes.bad_frame, 'invalid frame');
    } else if (frame.type === 'auth') {
      await this.#authenticate(frame.api_key);
    } else if (!this.#principal) {
      this.#socket.close(closeCodes.unauthorised, 'the first frame must be auth');
    } else if (frame.type === 'subscribe') {
      this.#wanted = frame.assets === '*' ? '*' : new Set(frame.assets);
      this.#snapshot_due = true;
      await this.#pump();
    } else {
      this.#send({ type: 'heartbeat' });
    }
  }

  async #authenticate(api_key: string): Promise<void> {
    const { gate, asker, kit_id } = this.#parts;
    try {
      const principal = await gate.byKey(api_key, asker.address);
      const mayRead = principal.scopes.includes('read' satisfies Scope) && maySee(principal, kit_id);
      if (mayRead) this.#principal = principal;
      else this.#socket.close(closeCodes.forbidden, 'kit not found');
    } catch {
      this.#socket.close(closeCodes.unauthorised, 'invalid key');
    }
  }

  #note(news: readonly Change[]): void {
    if (this.#wanted === undefined) return;
    for (const change of news) this.#pending.set(keyOf(change), change);
    void this.#pump();
  }

  /** Sends pending changes one after the other while the reader keeps up. */
  async #pump(): Promise<void> {
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      while (!this.#closed.signal.aborted && (this.#snapshot_due || this.#pending.size > 0)) {
        if (this.#socket.bufferedAmount > buffered_bytes_max) {
          const timer = setTimeout(() => void this.#pump(), catch_up_ms);
          this.#closed.signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
          return;
        }
        await this.#writeNext();
      }
    } catch {
      // Without the database there is nothing to send: the client reconnects later.
      this.#socket.close(1013, 'try again later');
    } finally {
      this.#isPumping = false;
    }
  }

  async #writeNext(): Promise<void> {
    const { store, kit_id } = this.#parts;
    const wants = (asset_id: string): boolean => this.#wanted === '*' || this.#wanted?.has(asset_id) === true;
    if (this.#snapshot_due) {
      this.#snapshot_due = false;
      this.#pending.clear();
      this.#send(await snapshotOf(store, kit_id, wants));
      return;
    }
    const [next] = this.#pending;
    if (!next) return;
    this.#pending.delete(next[0]);
    for (const frame of await framesOf(store, next[1], wants)) this.#send(frame);
  }

  #beat(): void {
    if (!this.#isAlive) {
      this.#socket.terminate();
      return;
    }
    this.#isAlive = false;
    this.#socket.ping();
    if (!this.#principal) return;
    this.#send({ type: 'heartbeat' });
    void this.#recheck(this.#principal);
  }

  /** Closes the socket when its key was revoked or its session has ended. */
  async #recheck(principal: Principal): Promise<void> {
    const { gate, asker } = this.#parts;
    const isKnown = await gate.isStillKnown(principal, asker).catch(() => true);
    if (!isKnown) this.#socket.close(closeCodes.unauthorised, 'key revoked or session expired');
  }

  #expectTurn(kit: Parameters<typeof turnsAt>[0]): void {
    clearTimeout(this.#turn);
    const turn_ms = turnsAt(kit, Date.now());
    if (turn_ms === undefined) return;
    const { kit_id } = this.#parts;
    const wait_ms = Math.max(turn_ms_min, turn_ms - Date.now());
    this.#turn = setTimeout(() => this.#note([{ kind: 'kit', kit_id }]), wait_ms);
  }

  #send(body: FrameBody): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    if ('kit' in body) this.#expectTurn(body.kit);
    const { type, ...rest } = body;
    const stamp = { seq: this.#seq, time: new Date().toISOString() };
    this.#seq += 1;
    this.#socket.send(JSON.stringify({ type, ...stamp, ...rest }));
  }
}

function textOf(raw: Buffer | ArrayBuffer | Buffer[]): string {
  if (Array.isArray(raw)) return Buffer.concat(raw).toString('utf8');
  return Buffer.isBuffer(raw) ? raw.toString('utf8') : Buffer.from(raw).toString('utf8');
}

function readFrame(text: string | undefined): ClientFrame | undefined {
  if (text === undefined) return undefined;
  try {
    return clientFrame.safeParse(readJson(text, request_limits)).data;
  } catch {
    return undefined;
  }
}
