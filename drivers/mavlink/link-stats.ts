/** How well a link works: what came in, what was no frame, and what each component's sequence numbers say is missing. */

/** Frames of one component over one link and peer. Loss = lost / (received + lost). */
export interface ComponentStats {
  readonly peer: string;
  readonly sysid: number;
  readonly compid: number;
  readonly received: number;
  readonly lost: number;
}

/** Counts since the link was made. */
export interface LinkStats {
  readonly up: boolean;
  /** How often the medium was opened. */
  readonly opened: number;
  readonly bytes_in: number;
  readonly bytes_out: number;
  readonly frames: number;
  /** Bytes that were part of no frame. */
  readonly bytes_skipped: number;
  /** Candidates of known messages whose checksum was wrong; a stray start byte can be one. */
  readonly bad_checksums: number;
  /** How often each message id came that no dialect of ours knows, as far as it came in one piece. */
  readonly unknown_ids: ReadonlyMap<number, number>;
  /** Not signed, although we have a key. */
  readonly unsigned: number;
  /** Signed with another key, or heard before. */
  readonly bad_signatures: number;
  /** Not sent: no peer, or the link did not take it. */
  readonly unsent: number;
  /** Frames over which the listener itself failed. */
  readonly faults: number;
  readonly components: readonly ComponentStats[];
}
