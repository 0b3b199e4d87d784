/**
 * How much of an upload may be under way: what the narrowest link delivers in the shortest round trip, and a short queue before it, since
 * live messages wait in that queue. Only the best rate and the shortest round trip count, so that jitter, as cellular links have, costs
 * nothing; where others fill the link both yield. Decision 0053.
 */
import type { Socket } from 'node:net';
import { libc } from '../../platform/linux/libc.ts';
import { askInt, tiocoutq } from '../../platform/linux/socket-options.ts';
import { type TcpInfo, tcpInfo } from '../../platform/linux/tcp-info.ts';
import { descriptorOf } from '../../platform/linux/unsent-bytes.ts';
import { sleep } from '../../platform/time.ts';

/** Fits into a packet, with TLS. */
const segment_bytes = 1_400;
export const piece_bytes_max = 16 * 1024;
/** Of fewer than two segments one would wait for a delayed acknowledgement. */
const under_way_bytes = { min: 2 * segment_bytes, max: 1024 * 1024 } as const;
/** The queue that the upload may build up on the way. */
const queue_ms = 25;
/** On a long link the limit grows by so much in a round trip, as long as there is no queue. */
const growth = 1.25;
/** The rate is measured over a round trip, but not over less; the best of some counts, so that a pause is no sign of a slower link. */
const slot_min_ms = 50;
const slots_kept = 4;
/** The shortest round trip of the connection before counts for so long: its end has left the queue empty. */
const base_kept_ms = 30_000;
const look_ms = 5;

/** Resolves with the bytes that may be written now. */
export type Room = (signal: AbortSignal) => Promise<number>;

export class ShortQueue {
  /** The next connection goes on with what the last one has found. */
  #bytes_max: number = under_way_bytes.min;
  #rates: readonly number[] = [];
  #base_ms = Infinity;

  /** For one connection. Where the kernel does not know its round trip and what was acknowledged, there is always room. */
  async of(tcp: Socket | undefined): Promise<Room> {
    const c = await libc().catch(() => undefined);
    const known = c && tcp && tcpInfo(c, descriptorOf(tcp) ?? -1);
    if (!c || !tcp || !known?.rtt_min_ms || known.acked_bytes === 0) return async () => piece_bytes_max;
    const before = { base_ms: this.#base_ms, until_ms: performance.now() + base_kept_ms };
    let slot: { readonly acked_bytes: number; readonly since_ms: number } | undefined;
    const learn = (fd: number): void => {
      const info = tcpInfo(c, fd);
      const now_ms = performance.now();
      if (!info) return;
      slot ??= { acked_bytes: info.acked_bytes, since_ms: now_ms };
      const before_ms = now_ms < before.until_ms ? before.base_ms : Infinity;
      this.#base_ms = Math.min(info.rtt_min_ms ?? Infinity, before_ms);
      const slot_ms = now_ms - slot.since_ms;
      if (slot_ms < Math.max(slot_min_ms, this.#base_ms)) return;
      this.#learn((info.acked_bytes - slot.acked_bytes) / slot_ms, info);
      slot = { acked_bytes: info.acked_bytes, since_ms: now_ms };
    };
    return async (signal) => {
      for (;;) {
        signal.throwIfAborted();
        const fd = descriptorOf(tcp);
        if (fd === null || tcp.destroyed) return piece_bytes_max;
        const under_way = askInt(c, fd, tiocoutq) + tcp.writableLength;
        // Nothing was delivered because nothing was written.
        if (under_way === 0) slot = undefined;
        learn(fd);
        const piece = Math.min(piece_bytes_max, Math.max(segment_bytes, Math.floor(this.#bytes_max / 8)));
        if (under_way + piece <= this.#bytes_max) return piece;
        await sleep(look_ms, signal);
      }
    };
  }

  #learn(bytes_per_ms: number, { rtt_ms }: TcpInfo): void {
    this.#rates = [...this.#rates, bytes_per_ms].slice(-slots_kept);
    const base_ms = this.#base_ms;
    const hasQueue = (rtt_ms ?? Infinity) - base_ms > queue_ms;
    const room_ms = (hasQueue ? base_ms : base_ms * growth) + queue_ms;
    const segments = (Math.max(...this.#rates) * room_ms) / segment_bytes;
    if (!Number.isFinite(segments)) return;
    // Of a few segments the growth would be less than one.
    const bytes_max = (hasQueue ? segments : Math.ceil(segments)) * segment_bytes;
    this.#bytes_max = Math.min(under_way_bytes.max, Math.max(under_way_bytes.min, bytes_max));
  }
}
