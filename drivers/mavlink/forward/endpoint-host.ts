/** The endpoint as its medium uses it. */
import type { EndpointTally } from './tally.ts';

/** Sends the bytes of one frame to every station, and counts it for each of them. */
export type Relay = (bytes: Uint8Array) => void;

export interface EndpointHost {
  readonly signal: AbortSignal;
  readonly tally: EndpointTally;
  /** `own_ports`: from which stations receive. */
  opened(relay: Relay, own_ports: readonly number[]): void;
  closed(): void;
  joined(peer: string): void;
  left(peer: string, reason?: string): void;
  /** Counts a connection above the maximum. */
  refused(): void;
  /** Counts a datagram that was not parsed, since too much arrived at once. */
  overrun(): void;
  /** Parses a datagram; returns whether it contained a frame. Frames of a refused station are counted and not forwarded. */
  datagram(bytes: Uint8Array, peer: string, how: { readonly isRefused: boolean }): boolean;
  /** Opens a parser for the bytes of a connection, until `over` aborts. */
  stream(peer: string, over: AbortSignal): (chunk: Uint8Array) => void;
}
