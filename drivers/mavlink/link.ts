/** One link to vehicles: bytes in, verified frames out, and back again; it heals by itself and ends with its signal. */
import type { Frame } from './frame.ts';
import type { LinkOptions } from './link-options.ts';
import type { LinkStats } from './link-stats.ts';
import type { Signing, SignFrame } from './signing.ts';

export interface Link {
  readonly name: string;
  /** Signs what goes out over this link: give it to `encode`. Undefined without a key. */
  readonly sign: SignFrame | undefined;
  /** Sends one encoded frame to `peer`, or to every peer heard lately. Never blocks and never throws: what cannot go is counted. */
  send(bytes: Uint8Array, peer?: string): void;
  stats(): LinkStats;
}

export interface LinkListener {
  /** `peer` names who sent it, stable while it keeps its address; `at_ms` is monotonic (`performance.now()`). */
  frame(frame: Frame, peer: string, at_ms: number): void;
  /** The medium was opened or lost; said once for each change, with what a technician needs to know. */
  state(up: boolean, reason?: string): void;
}

export interface LinkNeeds {
  readonly signal: AbortSignal;
  /** With it, frames that are not signed with our key do not reach the listener, except the radio's own reports. */
  readonly signing?: { readonly with: Signing; readonly link_id: number } | undefined;
}
