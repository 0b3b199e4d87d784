/**
 * What the ways of reaching a vehicle have in common. Each is a function that serves until the signal aborts, then
 * resolves; it rejects with DeviceUnreachable when it cannot be opened or is lost. Everything is closed when it settles.
 */
import { aborted } from '../../src/platform/time.ts';

/** Puts bytes on the medium; false when it does not take them. */
export type Send = (bytes: Uint8Array, peer?: string) => boolean;

/** What a medium may ask of its link. */
export interface MediumHost {
  readonly signal: AbortSignal;
  /** From now on the link is up, and sends with this. */
  opened(send: Send): void;
  /** A datagram came at `at_ms` (`performance.now()`); answers whether it held a frame that was accepted. */
  datagram(bytes: Uint8Array, peer: string, at_ms: number): boolean;
  /** Takes the bytes of a new connection. */
  stream(peer: string): Stream;
}

export interface Stream {
  push(chunk: Uint8Array): void;
  /** `performance.now()` of the last accepted frame; undefined before the first. */
  heard_ms(): number | undefined;
  close(): void;
}

/** Resolves when the signal aborts, rejects when `lost` does. Leaves no listener on the signal, which outlives the medium. */
export async function untilLost(lost: Promise<never>, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  try {
    await Promise.race([aborted(AbortSignal.any([signal, over.signal])), lost]);
  } finally {
    over.abort();
  }
}
