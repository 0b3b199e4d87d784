/** What the kit took, what the service stored, and what the broker lost: written down where it happens, for the checks. */
import { type Lane, laneRules } from '../../../src/contract/lanes.ts';
import { type DropReport, dropReport } from '../../../src/contract/drops.ts';
import { cloudAck } from '../../../src/contract/tasks.ts';
import type { Work } from '../../../src/kit/outbox/protocol.ts';
import { positionOf, rowId, type RowId } from '../../../src/kit/outbox/row.ts';
import { type Message as Stored, readMessage, type Reception } from '../../../src/cloud/read-message.ts';
import type { Message } from '../world/broker-session.ts';

/** Lazy messages that are younger may be lost at a power cut (the contract says 1.25 s). */
const lazy_loss_ms = 1_250;
/** A sweep and a turn of the event loop. */
const slack_ms = 300;

/** Rows that one commit takes, and the time from one to the next while there are more. */
const commit_rows = 4_096;
const commit_ms = 250;

/** Numbers of one acknowledgement that are looked up. */
const looks_max = 100_000;

/** A disk that refused is tried again after this time at the latest. */
const commit_again_ms = 31_000;

/** A time in which the kit's disk took nothing, or not soon. */
export interface Trouble {
  readonly from_ms: number;
  readonly to_ms: number;
}

export interface Taken {
  readonly id: RowId;
  readonly lane: Lane;
  readonly channel: string;
  readonly at_ms: number;
  /** JSON text of the data. */
  readonly body: string;
  on_disk: boolean;
  /** May be missing: its run ended before it had to be safe. */
  excused: boolean;
}

/** No honest message of a story has more. */
const shown_chars_max = 1_500;

export interface Newest {
  readonly id: RowId;
}

export class Witness {
  readonly taken = new Map<RowId, Taken>();
  /** How often each message was in a commit of the service. */
  readonly stored = new Map<RowId, number>();
  /** Of each channel, what the service has to show in the end. */
  readonly newest = new Map<string, Newest>();
  readonly drops: DropReport['drops'][number][] = [];
  /** Messages that the broker or its limits lost, which the contract does not promise to bring. */
  readonly lost = new Set<RowId>();
  /** What the `drops` among them named. */
  readonly lost_drops = new Map<RowId, DropReport['drops']>();
  /** Highest id of each epoch's messages that were taken: epochs must rise. */
  readonly last_of_channel = new Map<string, Taken>();
  counted = 0;

  /** `order` is that of the caller's clock. */
  took(taken: Taken): string | undefined {
    const before = this.taken.get(taken.id);
    this.taken.set(taken.id, taken);
    if (taken.lane === 'presence') this.last_of_channel.set(taken.channel, taken);
    if (!before) return undefined;
    const { epoch, seq } = positionOf(taken.id);
    return `the number ${epoch}/${seq} was given twice: to ${before.channel} and to ${taken.channel}`;
  }

  /** A commit of the kit is on its disk. */
  wrote(work: Work): void {
    for (const { id } of work.rows) {
      const taken = this.taken.get(id);
      if (taken) taken.on_disk = true;
    }
  }

  /** A power cut tore this commit. */
  tore(ids: readonly RowId[]): void {
    for (const id of ids) {
      const taken = this.taken.get(id);
      if (taken) [taken.on_disk, taken.excused] = [false, true];
    }
  }

  /**
   * The run ended without a word: what it did not have to have on disk may be missing. What waits for a packet of `packet_ms`
   * goes to the disk so much later.
   */
  excuse(now_ms: number, troubles: readonly Trouble[], packet_ms: number): void {
    const recent = troubles.filter(({ to_ms }) => now_ms < to_ms + commit_again_ms);
    for (const taken of this.taken.values()) {
      if (taken.on_disk || taken.excused || this.stored.has(taken.id)) continue;
      const grace_ms =
        laneRules[taken.lane].durability === 'sync' ? Infinity : lazy_loss_ms + slack_ms + packet_ms;
      const is_young = now_ms - taken.at_ms <= grace_ms;
      const is_troubled = recent.some(
        ({ from_ms }) => taken.at_ms > from_ms - lazy_loss_ms - slack_ms - packet_ms,
      );
      if (is_young || is_troubled || now_ms - taken.at_ms <= grace_ms + this.#queued_ms(taken))
        taken.excused = true;
    }
  }

  /** What comes in a burst waits for the commits before it. */
  #queued_ms({ at_ms }: Taken): number {
    let burst = 0;
    for (const other of this.taken.values()) {
      if (other.at_ms <= at_ms && at_ms - other.at_ms <= lazy_loss_ms) burst += 1;
    }
    return Math.floor(burst / commit_rows) * commit_ms;
  }

  /** A commit of the service. */
  storedAll(receptions: readonly Reception[]): void {
    for (const { messages } of receptions) for (const message of messages) this.#store(message);
  }

  /** What is wrong with an acknowledgement of the service: it names only what is stored. */
  wrongIn(text: string): string | undefined {
    const { epoch, ranges } = cloudAck.parse(JSON.parse(text));
    let looks = 0;
    for (const [lo, hi] of ranges) {
      if (hi - lo > looks_max) return `the service acknowledged ${hi - lo + 1} numbers at once`;
      for (let seq = lo; seq <= hi && looks < looks_max; seq++) {
        looks += 1;
        if (!this.stored.has(rowId({ epoch, seq }))) return 'the service acknowledged what it has not stored';
      }
    }
    return undefined;
  }

  /** The broker lost something on this channel, and may. */
  hasLost(channel: string): boolean {
    return [...this.lost].some((id) => this.taken.get(id)?.channel === channel && !this.stored.has(id));
  }

  /** The broker had acknowledged these. */
  brokerLost(messages: readonly Message[]): void {
    for (const { topic, payload } of messages) {
      for (const { epoch, seq, channel, data } of readMessage(topic, payload)?.messages ?? []) {
        if (channel.kind === 'state') continue;
        const id = rowId({ epoch, seq });
        this.lost.add(id);
        if (channel.kind === 'drops') this.lost_drops.set(id, dropReport.parse(data).drops);
      }
    }
  }

  #store(message: Stored): void {
    const { channel, epoch, seq, data } = message;
    if (channel.kind === 'state') return;
    this.counted += 1;
    const id = rowId({ epoch, seq });
    const times = (this.stored.get(id) ?? 0) + 1;
    this.stored.set(id, times);
    if (times > 1) return;
    // The contract bounds every text: what is beyond it is counted and not shown.
    const is_shown = JSON.stringify(data).length < shown_chars_max;
    const key = is_shown ? keyOf(message) : undefined;
    if (key && id > (this.newest.get(key)?.id ?? -1)) this.newest.set(key, { id });
    if (channel.kind === 'drops') this.drops.push(...(dropReport.safeParse(data).data?.drops ?? []));
  }
}

/** What the service shows one newest value of. */
function keyOf({ channel }: Stored): string | undefined {
  if (channel.kind === 'asset') return `assets ${channel.asset_id}`;
  if (channel.kind === 'commands') return `commands ${channel.asset_id}`;
  if (channel.kind !== 'feed' && channel.kind !== 'event') return undefined;
  const is_edge = channel.feed === 'asset_status' || channel.feed === 'link_status';
  return is_edge ? undefined : `feeds ${channel.asset_id} ${channel.feed}`;
}
