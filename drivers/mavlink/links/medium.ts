/**
 * Types shared by the media (UDP, TCP, serial). Each medium is a function that serves until the signal aborts, then
 * resolves; it rejects with DeviceUnreachable when it cannot be opened or is lost. Everything is closed when it settles.
 */

/** Writes bytes to the medium; false when it does not accept them. */
export type Send = (bytes: Uint8Array, peer?: string) => boolean;

/**
 * Discards what was sent to the peer until `sent_ms` (`performance.now()`) and has not left this machine, if necessary
 * by closing the connection: a frame that is transmitted after its command has ended would be executed.
 */
export type Discard = (peer: string, sent_ms: number) => void;

/**
 * What a datagram contained: an accepted frame, or only frames that our key has signed earlier. The clock of their sender is behind,
 * until it receives ours.
 */
export type Reception = 'accepted' | 'behind' | 'ignored';

/** The medium as its link uses it. */
export interface Transport {
  readonly send: Send;
  readonly discard: Discard;
  /** Whether the configuration names a peer. */
  readonly isNamed: (peer: string) => boolean;
  /** Whether a peer may be sent so many bytes; without a limit when omitted. */
  readonly allows?: (peer: string, bytes: number) => boolean;
}

/** The link as a medium uses it. */
export interface MediumHost {
  readonly signal: AbortSignal;
  /** A satellite modem may be silent for so long; the usual time when undefined. */
  readonly silence_max_ms?: number | undefined;
  /** Marks the link as up. */
  opened(transport: Transport): void;
  /** Parses a datagram received at `at_ms` (`performance.now()`). */
  datagram(bytes: Uint8Array, peer: string, at_ms: number): Reception;
  /** Counts the bytes of a datagram that was not parsed, since too much arrived at once. */
  overrun(bytes: number): void;
  /** Opens a parser for the bytes of a new connection. */
  stream(peer: string): Stream;
}

export interface Stream {
  push(chunk: Uint8Array): void;
  /** `performance.now()` of the last accepted frame; undefined before the first. */
  received_ms(): number | undefined;
  close(): void;
}
