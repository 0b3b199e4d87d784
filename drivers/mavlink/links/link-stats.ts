/** Statistics of a link: received data, bytes outside frames, and losses by the sequence numbers of each component. */

/** Frames of one component over one link and peer. Loss = lost / (received + lost). */
export interface ComponentStats {
  readonly peer: string;
  readonly sysid: number;
  readonly compid: number;
  readonly received: number;
  readonly lost: number;
}

/** Counts since the link was created. */
export interface LinkStats {
  readonly up: boolean;
  /** Number of times the medium was opened. */
  readonly opened: number;
  readonly bytes_in: number;
  readonly bytes_out: number;
  readonly frames: number;
  /** Bytes outside any frame. */
  readonly bytes_skipped: number;
  /** Candidate frames of known messages with a wrong checksum; a stray start byte can cause one. */
  readonly bad_checksums: number;
  /** Count by message id of complete frames that none of our dialects defines. */
  readonly unknown_ids: ReadonlyMap<number, number>;
  /** Frames without a signature although a key is configured. */
  readonly unsigned: number;
  /** Frames signed with another key. */
  readonly bad_signatures: number;
  /** Frames signed with our key at a wrong time: received before, recorded ones, by a clock that is behind or far ahead. */
  readonly repeated: number;
  /** Frames not sent: no peer, or the link rejected them. */
  readonly unsent: number;
  /** Frames not sent because of `bytes_per_s_max`. */
  readonly over_budget: number;
  /** The limit of what is sent to vehicles, and the rate of the last ten seconds; absent without a limit. */
  readonly budget?: { readonly bytes_per_s_max: number; readonly bytes_per_s: number };
  /** Frames on which the listener threw. */
  readonly faults: number;
  readonly components: readonly ComponentStats[];
}
