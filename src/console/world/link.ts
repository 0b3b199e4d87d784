/**
 * The page's own link to the service. A socket that is half open looks alive for hours, so the silence is measured here:
 * the link counts as lost when nothing was received for a while, whatever state the socket reports.
 */
import { field, parseJson } from '../json.ts';
import { elapsed_ms, slept_ms } from './elapsed.ts';
import type { PageLink } from '../types.d.ts';

interface Frame {
  readonly type: string;
  readonly seq: number;
  readonly time: string;
}

/** The service sends a heartbeat every 5 s; after this silence the page sends a ping. */
const ping_after_ms = 2_000;
/** Without any frame for this long the link is lost. */
export const lost_after_ms = 5_000;
/** A socket that stays silent for this long is replaced. */
const give_up_ms = 10_000;
const retry_first_ms = 500;
const retry_max_ms = 10_000;
/** A closed socket is reported as lost only when it was not replaced within this time. */
const closed_grace_ms = 2_000;
const check_every_ms = 500;
/** Timers that stood still for this long: the silence is no sign of a lost link. */
const stood_ms = 3_000;
/** A larger difference is a step of the server's clock, not a delayed frame. */
const clock_step_ms = 60_000;

interface Listener<F extends Frame> {
  /** Frames that are in step: that named by `first` first. */
  onFrame: (frame: F) => void;
  onLink?: (link: PageLink) => void;
  /** The socket could not be opened: the session may have ended. */
  onRefused?: () => void;
}

interface Subscription {
  /** Of the socket. */
  path: string;
  /** That subscribes. */
  frame: object;
  /** Type of the frame that answers it, complete in itself. */
  first: string;
}

export class ServiceLink<F extends Frame> {
  #subscription: Subscription;
  #listener: Listener<F>;
  #socket: WebSocket | undefined;
  #link: PageLink = { state: 'connecting', since_ms: elapsed_ms() };
  #received_ms = elapsed_ms();
  #pinged_ms = 0;
  #opened_ms = 0;
  #looked_ms = elapsed_ms();
  #woke_ms = 0;
  #slept_ms = slept_ms;
  #seq = -1;
  #isSnapshotDue = true;
  #retry_ms = retry_first_ms;
  #retry_at_ms = 0;
  /** What to add to `elapsed_ms()` for the server's clock. */
  #offset_ms = Date.now() - elapsed_ms();
  #isClockKnown = false;
  #timer: ReturnType<typeof setInterval>;

  constructor(subscription: Subscription, listener: Listener<F>) {
    this.#subscription = subscription;
    this.#listener = listener;
    this.#open();
    this.#timer = setInterval(() => this.#look(), check_every_ms);
    // The socket of the network before would look open for another 10 s, or its turn to be replaced be as far away.
    addEventListener('online', this.#open);
  }

  /** The server's clock, milliseconds since 1970. */
  get time_ms() {
    return elapsed_ms() + this.#offset_ms;
  }

  /** Whether an order would reach a responding service, as far as the page can know. */
  get isInStep() {
    return this.#link.state === 'live' && this.#socket?.readyState === WebSocket.OPEN && !this.#isSnapshotDue;
  }

  close() {
    clearInterval(this.#timer);
    removeEventListener('online', this.#open);
    this.#drop();
  }

  #open = () => {
    this.#drop();
    const url = location.origin.replace(/^http/u, 'ws') + this.#subscription.path;
    const socket = new WebSocket(url, ['kit.v1']);
    this.#socket = socket;
    this.#isClockKnown = false;
    this.#isSnapshotDue = true;
    this.#opened_ms = elapsed_ms();
    this.#retry_at_ms = 0;
    socket.onopen = () => this.#subscribe();
    socket.onmessage = ({ data }) => this.#receive(data);
    socket.onclose = () => this.#ended();
  };

  #drop() {
    const socket = this.#socket;
    this.#socket = undefined;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }

  #ended() {
    this.#socket = undefined;
    const wasNeverOpen = this.#isSnapshotDue;
    this.#isSnapshotDue = true;
    this.#retry_at_ms = elapsed_ms() + this.#retry_ms * (0.75 + Math.random() / 2);
    this.#retry_ms = Math.min(retry_max_ms, this.#retry_ms * 2);
    if (wasNeverOpen) this.#listener.onRefused?.();
  }

  #subscribe() {
    this.#isSnapshotDue = true;
    this.#socket?.send(JSON.stringify(this.#subscription.frame));
  }

  /** A socket from before a sleep is replaced (home-assistant/iOS#1987): what it still delivers would be taken for new. */
  #hasSlept() {
    elapsed_ms();
    if (this.#slept_ms === slept_ms) return false;
    this.#slept_ms = slept_ms;
    this.#open();
    return true;
  }

  #receive(data: unknown) {
    if (this.#hasSlept()) return;
    const frame = typeof data === 'string' ? parseJson(data) : undefined;
    if (!this.#isFrame(frame)) return;
    this.#received_ms = elapsed_ms();
    this.#setClock(Date.parse(frame.time));
    const inStep = frame.seq === this.#seq + 1;
    this.#seq = frame.seq;
    if (frame.type === this.#subscription.first) {
      this.#isSnapshotDue = false;
      this.#retry_ms = retry_first_ms;
      this.#listener.onFrame(frame);
      this.#setState('live');
    } else if (!this.#isSnapshotDue) {
      // After a loss or a gap frames are missing: only a new snapshot is complete.
      if (!inStep || this.#link.state !== 'live') this.#subscribe();
      else this.#listener.onFrame(frame);
    }
  }

  /** The service checks what it sends against its own schema; here only the form is looked at. */
  #isFrame(value: unknown): value is F {
    return (
      typeof field(value, 'type') === 'string' &&
      typeof field(value, 'seq') === 'number' &&
      typeof field(value, 'time') === 'string'
    );
  }

  /** The frame with the shortest delay gives the best estimate of the clock. */
  #setClock(time_ms: number) {
    const offset_ms = time_ms - elapsed_ms();
    const isStep = Math.abs(offset_ms - this.#offset_ms) > clock_step_ms;
    if (!this.#isClockKnown || isStep || offset_ms > this.#offset_ms) this.#offset_ms = offset_ms;
    this.#isClockKnown = true;
  }

  #look() {
    this.#hasSlept();
    const now_ms = elapsed_ms();
    if (now_ms - this.#looked_ms > stood_ms) this.#woke_ms = now_ms;
    this.#looked_ms = now_ms;
    if (!this.#socket) {
      if (now_ms - Math.max(this.#received_ms, this.#woke_ms) > closed_grace_ms) this.#setState('lost');
      if (now_ms >= this.#retry_at_ms) this.#open();
    } else if (this.#socket.readyState === WebSocket.CONNECTING) {
      if (now_ms - Math.max(this.#received_ms, this.#woke_ms) > closed_grace_ms) this.#setState('lost');
      if (now_ms - this.#opened_ms > give_up_ms) this.#open();
    } else {
      this.#judge(this.#socket, now_ms);
    }
  }

  #judge(socket: WebSocket, now_ms: number) {
    const woke_ms = this.#woke_ms - lost_after_ms + closed_grace_ms;
    const silent_ms = now_ms - Math.max(this.#received_ms, this.#opened_ms, woke_ms);
    if (silent_ms > lost_after_ms) this.#setState('lost');
    if (silent_ms > give_up_ms) this.#open();
    else if (silent_ms > ping_after_ms && now_ms - this.#pinged_ms > ping_after_ms) {
      this.#pinged_ms = now_ms;
      socket.send(JSON.stringify({ type: 'ping' }));
    }
  }

  #setState(state: PageLink['state']) {
    if (this.#link.state === state) return;
    this.#link = { state, since_ms: state === 'lost' ? this.#received_ms : elapsed_ms() };
    this.#listener.onLink?.(this.#link);
  }
}
