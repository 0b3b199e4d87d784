/** Counts the traffic, errors and losses of one link. */
import type { FramerTally } from '../wire/framer.ts';
import type { Frame } from '../wire/frame.ts';

const unknown_ids_max = 64;
const components_max = 256;
/** A sequence number at most this far back is a late frame; one further back means that the sender restarted. */
const late_max = 8;

interface Component {
  readonly peer: string;
  readonly sysid: number;
  readonly compid: number;
  received: number;
  lost: number;
  next_seq: number;
}

/** Counts since the link was created. */
const zero = {
  /** Number of times the medium was opened. */
  opened: 0,
  bytes_in: 0,
  bytes_out: 0,
  frames: 0,
  /** Bytes outside any frame. */
  bytes_skipped: 0,
  /** Candidate frames of known messages with a wrong checksum; a stray start byte can cause one. */
  bad_checksums: 0,
  /** Frames without a signature although a key is configured. */
  unsigned: 0,
  /** Frames signed with another key. */
  bad_signatures: 0,
  /** Frames signed with our key at a wrong time: received before, recorded ones, by a clock that is behind or far ahead. */
  repeated: 0,
  /** Frames not sent: no peer, or the link rejected them. */
  unsent: 0,
  /** Frames not sent because of `bytes_per_s_max`. */
  over_budget: 0,
  /** Frames on which the listener threw. */
  faults: 0,
};
type Count = keyof typeof zero;

export class LinkTally implements FramerTally {
  readonly #counts = { ...zero };
  readonly #unknown = new Map<number, number>();
  /** By peer, then by system and component. When full, a component of the oldest peer is dropped. */
  readonly #components = new Map<string, Map<number, Component>>();
  #components_count = 0;
  up = false;

  add(count: Count, by = 1): void {
    this.#counts[count] += by;
  }

  skipped(bytes: number): void {
    this.#counts.bytes_skipped += bytes;
  }

  badChecksum(): void {
    this.#counts.bad_checksums++;
  }

  unknownId(msgid: number): void {
    const count = this.#unknown.get(msgid) ?? 0;
    if (count > 0 || this.#unknown.size < unknown_ids_max) this.#unknown.set(msgid, count + 1);
  }

  /** Counts an accepted frame. Each component of each peer has a separate sequence. */
  frame({ sysid, compid, seq }: Frame, peer: string): void {
    this.#counts.frames++;
    const known = this.#components.get(peer)?.get((sysid << 8) | compid);
    if (known === undefined) {
      this.#begin({ peer, sysid, compid, received: 1, lost: 0, next_seq: next(seq) });
      return;
    }
    known.received++;
    const ahead = (seq - known.next_seq) & 0xff;
    const isLate = ahead >= 256 - late_max;
    if (isLate) {
      // It was counted as lost when its successor overtook it. A repeat of the last number is a duplicate, not a late frame.
      if (ahead !== 255 && known.lost > 0) known.lost--;
      return;
    }
    if (ahead < 128) known.lost += ahead;
    known.next_seq = next(seq);
  }

  stats(): LinkStats {
    const components: ComponentStats[] = [];
    for (const of_peer of this.#components.values()) {
      for (const { peer, sysid, compid, received, lost } of of_peer.values()) {
        components.push({ peer, sysid, compid, received, lost });
      }
    }
    return { up: this.up, ...this.#counts, unknown_ids: new Map(this.#unknown), components };
  }

  #begin(component: Component): void {
    if (this.#components_count >= components_max) this.#dropOldest();
    const of_peer = this.#components.get(component.peer) ?? new Map<number, Component>();
    this.#components.set(component.peer, of_peer);
    of_peer.set((component.sysid << 8) | component.compid, component);
    this.#components_count += 1;
  }

  #dropOldest(): void {
    for (const [peer, of_peer] of this.#components) {
      for (const sender of of_peer.keys()) {
        of_peer.delete(sender);
        this.#components_count -= 1;
        if (of_peer.size === 0) this.#components.delete(peer);
        return;
      }
    }
  }
}

function next(seq: number): number {
  return (seq + 1) & 0xff;
}

// Statistics of a link: received data, bytes outside frames, and losses by the sequence numbers of each component.

/** Frames of one component over one link and peer. Loss = lost / (received + lost). */
export type ComponentStats = Readonly<Omit<Component, 'next_seq'>>;

export interface LinkStats extends Readonly<typeof zero> {
  readonly up: boolean;
  /** Count by message id of complete frames that none of our dialects defines. */
  readonly unknown_ids: ReadonlyMap<number, number>;
  /** The limit of what is sent to vehicles, and the rate of the last ten seconds; absent without a limit. */
  readonly budget?: { readonly bytes_per_s_max: number; readonly bytes_per_s: number };
  readonly components: readonly ComponentStats[];
}
