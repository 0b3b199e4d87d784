/**
 * Reads past the content of messages that are too large, or for which there is no room, before the library holds it: AMQP
 * announces the size of a message first, and the library would collect all of it.
 */
import type { Channel } from 'amqplib';
import { texts } from '../texts.ts';

export interface FilterLimits {
  /** Of one message. */
  readonly message_bytes_max: number;
  /** Of all messages that were passed on and not released. */
  readonly held_bytes_max: number;
}

/** Why the library gives a message without its content, and how large it was. */
export interface Unread {
  readonly reason: 'too_large' | 'no_room';
  readonly bytes: number;
}

/** What the library reads: a method, the header of a content with its size, or a part of the content. */
interface Frame {
  readonly id?: unknown;
  readonly size?: unknown;
  readonly content?: unknown;
  readonly fields?: unknown;
}

/** A message whose content is read past: what the library gets once that is done. */
interface Skipping {
  readonly frames: readonly Frame[];
  readonly unread: Unread;
}

/** Class and method of basic.deliver, and the class basic (AMQP 0-9-1, section 1.8). */
const deliver = 0x3c_00_3c;
const basic = 0x3c;

export class DeliveryFilter {
  readonly #limits: FilterLimits;
  /** Gives a frame to the library. */
  readonly #pass: (frame: unknown) => void;
  /** A delivery whose size has not arrived. */
  #delivery: Frame | undefined;
  #skipping: Skipping | undefined;
  #skip_bytes = 0;
  #held_bytes = 0;
  #unread: Unread | undefined;
  /** Called when there is room again. */
  #onRoom: (() => void)[] = [];

  constructor(limits: FilterLimits, pass: (frame: unknown) => void) {
    this.#limits = limits;
    this.#pass = pass;
  }

  /** Why the message that the library gives at this moment has no content; undefined: it has, and must be released. */
  get unread(): Unread | undefined {
    return this.#unread;
  }

  /** A message of so many bytes is stored, or was returned. */
  release(bytes: number): void {
    this.#held_bytes -= bytes;
    if (this.#held_bytes > this.#limits.held_bytes_max / 2) return;
    const due = this.#onRoom;
    this.#onRoom = [];
    for (const notify of due) notify();
  }

  /** Calls back once half of the room is free. */
  whenRoom(notify: () => void): void {
    this.#onRoom.push(notify);
  }

  /** Takes the next frame of the channel. Throws when more content arrives than was announced. */
  accept(frame: Frame): void {
    const delivery = this.#delivery;
    if (this.#skipping) this.#skip(frame.content, this.#skipping);
    else if (delivery) this.#judge(delivery, frame);
    else if (frame.id === deliver) this.#delivery = frame;
    else this.#pass(frame);
  }

  /** Decides about a delivery by its header. What is no header breaks the protocol, which the library reports. */
  #judge(delivery: Frame, header: Frame): void {
    this.#delivery = undefined;
    const bytes = header.id === basic && typeof header.size === 'number' ? Math.max(0, header.size) : 0;
    const { message_bytes_max, held_bytes_max } = this.#limits;
    const isTooLarge = bytes > message_bytes_max;
    const isBeyond = bytes > 0 && this.#held_bytes > 0 && this.#held_bytes + bytes > held_bytes_max;
    if (isTooLarge || isBeyond) {
      const unread: Unread = { reason: isTooLarge ? 'too_large' : 'no_room', bytes };
      this.#skipping = { frames: [delivery, { ...header, size: 0 }], unread };
      this.#skip_bytes = bytes;
      return;
    }
    this.#held_bytes += bytes;
    this.#pass(delivery);
    this.#pass(header);
  }

  #skip(content: unknown, { frames, unread }: Skipping): void {
    if (!(content instanceof Uint8Array) || content.length > this.#skip_bytes)
      throw new Error(texts.amqp_content_broken);
    this.#skip_bytes -= content.length;
    if (this.#skip_bytes > 0) return;
    this.#skipping = undefined;
    this.#unread = unread;
    try {
      for (const frame of frames) this.#pass(frame);
    } finally {
      this.#unread = undefined;
    }
  }
}

/** Puts a filter between the connection and a channel. Throws when the library has changed so that this is not possible. */
export function filterDeliveries(channel: Channel, limits: FilterLimits): DeliveryFilter {
  const accept: unknown = Reflect.get(channel, 'accept');
  if (typeof accept !== 'function') throw new Error(texts.amqp_unfiltered);
  const filter = new DeliveryFilter(limits, (frame) => void Reflect.apply(accept, channel, [frame]));
  Reflect.set(channel, 'accept', (frame: Frame) => filter.accept(frame));
  return filter;
}
