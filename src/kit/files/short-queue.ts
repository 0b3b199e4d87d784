/**
 * How much of an upload may be under way: as long as the queue before the narrowest link stays short, since live messages wait in it.
 * As in LEDBAT (RFC 6817), a round trip that takes longer than the shortest one says how long the queue is.
 */
import type { Socket } from 'node:net';
import { type Libc, libc } from '../../platform/linux/libc.ts';
import { askInt, tiocoutq } from '../../platform/linux/socket-options.ts';
import { tcpInfo } from '../../platform/linux/tcp-info.ts';
import { descriptorOf } from '../../platform/linux/unsent-bytes.ts';
import { sleep } from '../../platform/time.ts';

/** Written at once. */
export const piece_bytes = 4 * 1024;
/** Under way without an acknowledgement; more than `first` only where round trips stay short. */
const under_way_bytes = { min: piece_bytes, first: 4 * piece_bytes, max: 1024 * 1024 } as const;
const queue_ms_max = 30;
const look_ms = 5;

export class ShortQueue {
  /** The next connection goes on with what the last one has found. */
  #bytes_max: number = under_way_bytes.first;
  #changed_ms = 0;

  /** For one connection: resolves when a piece may be written. Without a socket of the kernel, always. */
  async of(tcp: Socket | undefined): Promise<(signal: AbortSignal) => Promise<void>> {
    const c = await libc().catch(() => undefined);
    if (!c || !tcp) return async () => undefined;
    let shortest_ms = Infinity;
    return async (signal) => {
      for (;;) {
        signal.throwIfAborted();
        const fd = descriptorOf(tcp);
        if (fd === null || tcp.destroyed) return;
        const under_way = askInt(c, fd, tiocoutq) + tcp.writableLength;
        if (under_way + piece_bytes <= this.#bytes_max) return;
        shortest_ms = Math.min(shortest_ms, this.#learn(c, fd, shortest_ms));
        if (under_way + piece_bytes <= this.#bytes_max) return;
        await sleep(look_ms, signal);
      }
    };
  }

  /** Changes the limit once in a round trip at most. Returns the time of the last one. */
  #learn(c: Libc, fd: number, shortest_ms: number): number {
    const rtt_ms = tcpInfo(c, fd)?.rtt_ms ?? Infinity;
    const now_ms = performance.now();
    if (now_ms - this.#changed_ms < rtt_ms) return rtt_ms;
    this.#changed_ms = now_ms;
    const next = rtt_ms - shortest_ms > queue_ms_max ? this.#bytes_max / 2 : this.#bytes_max + piece_bytes;
    this.#bytes_max = Math.min(under_way_bytes.max, Math.max(under_way_bytes.min, next));
    return rtt_ms;
  }
}
