/**
 * How far a client has read: each pong names what was sent before its ping. The buffers of both sides may hold megabytes that a slow
 * client has not read, so neither what this side still holds nor the time until a pong shows whether it reads.
 */

/** Characters after which a ping is sent between two heartbeats. */
const ping_every_chars = 16 * 1024;
/** Characters that a client may be behind; beyond this nothing is sent until it has caught up. */
export const behind_chars_max = 128 * 1024;
/** Heartbeats without a pong that a client has for this much of what it has to read first; one is always allowed. */
const chars_per_beat_min = ping_every_chars;
/** Of one frame of any size: two minutes. */
const silent_beats_max = 24;

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
