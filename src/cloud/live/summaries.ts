/** Summaries for sockets: read once for all of them, and collected for each, of all kits of its key first, then of changed kits, once a second. */
import { maySee, type Principal } from '../principal.ts';
import { type FleetServerFrame, summaries_at_once } from '../api/frames.ts';
import type { KitResource } from '../api/resources.ts';
import type { ListedKit } from '../kit-list.ts';
import type { Service } from '../service.ts';
import { every } from '../../platform/time.ts';
import type { Change } from '../stored/stored.ts';
import type { Changes } from '../changes.ts';
import type { Following } from './kit-follower.ts';

export type SummaryFrame = Omit<Extract<FleetServerFrame, { type: 'summaries' }>, 'seq' | 'time'>;

/** Kits of the first list that are read at once: of a slow reader, the service holds no more summaries, and the ids of the others. */
export const read_at_once = 500;

export interface SummaryFollowerParts extends Following {
  readonly principal: Principal;
  readonly shared: SharedSummaries;
  readonly service: Pick<Service, 'kitIds' | 'listed'>;
}

export class SummaryFollower {
  readonly #parts: SummaryFollowerParts;
  /** Kits of the first list that are not read yet; undefined: they are not known yet. */
  #unread: string[] | undefined;
  /** Kits of the first list that were read and not sent yet. */
  #unsent: KitResource[] = [];
  readonly #changed = new Set<string>();
  /** When a kit changes without a message. */
  readonly #turns = new Map<string, number>();
  #isTime = false;

  constructor(parts: SummaryFollowerParts) {
    this.#parts = parts;
    const { shared, principal, signal } = parts;
    const onChange = (kit_id: string): void => {
      if (maySee(principal, kit_id)) this.#changed.add(kit_id);
    };
    shared.follow({ onChange, onTurn: () => this.#tick() }, signal);
  }

  get isDue(): boolean {
    if (this.#parts.signal.aborted) return false;
    return this.#left !== 0 || (this.#isTime && this.#changed.size > 0);
  }

  /** Kits of the first list that were not sent yet; undefined: it is not known yet. */
  get #left(): number | undefined {
    return this.#unread && this.#unread.length + this.#unsent.length;
  }

  async next(): Promise<SummaryFrame> {
    if (this.#left !== 0) {
      if (this.#unsent.length === 0) await this.#parts.inTurn(async () => this.#readMore());
      // An empty list is an answer too.
      const kits = this.#unsent.splice(0, summaries_at_once);
      return { type: 'summaries', kits, left: this.#left ?? 0 };
    }
    const some = [...this.#changed].slice(0, summaries_at_once);
    for (const kit_id of some) this.#changed.delete(kit_id);
    if (this.#changed.size === 0) this.#isTime = false;
    const kits = this.#noted(await this.#listed(some));
    const gone = some.filter((kit_id) => !kits.some(({ id }) => id === kit_id));
    for (const kit_id of gone) this.#turns.delete(kit_id);
    return { type: 'summaries', kits, left: 0, ...(gone.length > 0 && { gone }) };
  }

  async #readMore(): Promise<void> {
    const { service, principal, signal } = this.#parts;
    if (!this.#unread) {
      this.#changed.clear();
      // The subscription may have ended.
      this.#unread = signal.aborted ? [] : [...(await service.kitIds(principal))];
    }
    const some = this.#unread.splice(0, read_at_once);
    if (some.length > 0) this.#unsent = this.#noted(await this.#listed(some));
  }

  async #listed(kit_ids: readonly string[]): Promise<readonly ListedKit[]> {
    const { service, principal, shared } = this.#parts;
    const listed = await shared.of(kit_ids);
    // Only the key names a kit that is not stored.
    return listed.length === kit_ids.length ? listed : service.listed(principal, kit_ids);
  }

  #noted(listed: readonly ListedKit[]): KitResource[] {
    for (const { kit, turn_ms } of listed) {
      if (turn_ms === undefined) this.#turns.delete(kit.id);
      else this.#turns.set(kit.id, turn_ms);
    }
    return listed.map(({ kit }) => kit);
  }

  #tick(): void {
    const now_ms = Date.now();
    for (const [kit_id, turn_ms] of this.#turns) {
      if (turn_ms > now_ms) continue;
      this.#turns.delete(kit_id);
      this.#changed.add(kit_id);
    }
    this.#isTime = true;
    if (this.#changed.size > 0) this.#parts.wake();
  }
}

/** Changes of a kit within this time are sent together. */
const pace_ms = 1_000;
/** Sockets take turns within that time, so that they do not write all at the same moment. */
const turns = 4;
/** Feed messages and commands change no summary. */
const summary_kinds: ReadonlySet<Change['kind']> = new Set(['kit', 'kit_gone', 'asset', 'asset_gone']);

type ReadKits = (kit_ids: readonly string[]) => Promise<readonly ListedKit[]>;
type Reading = Promise<ReadonlyMap<string, ListedKit>>;

/** What a socket does with its turn and with changes. */
export interface Follower {
  readonly onTurn: () => void;
  /** A summary of this kit has changed. */
  readonly onChange: (kit_id: string) => void;
}

export class SharedSummaries {
  readonly #changes: Changes;
  readonly #read: ReadKits;
  readonly #followers: readonly Set<Follower>[] = Array.from({ length: turns }, () => new Set());
  /** Readings that no later change has made outdated, for a second at most. */
  readonly #kept = new Map<string, Reading>();
  #following: AbortController | undefined;
  #turn = 0;

  /** `read` gets no more kits at once than a caller of `of` names. */
  constructor(changes: Changes, read: ReadKits) {
    this.#changes = changes;
    this.#read = read;
  }

  /** Reports changes and gives a turn once a second until the signal aborts. Nothing is kept while there is no follower. */
  follow(follower: Follower, signal: AbortSignal): void {
    if (signal.aborted) return;
    this.#following ??= this.#begin();
    const [group] = this.#followers.toSorted((a, b) => a.size - b.size);
    group?.add(follower);
    signal.addEventListener('abort', () => this.#leave(follower), { once: true });
  }

  /** Returns these kits as they are now, in this order, without those which never reported. */
  async of(kit_ids: readonly string[]): Promise<readonly ListedKit[]> {
    const missing = kit_ids.filter((kit_id) => !this.#kept.has(kit_id));
    if (missing.length > 0) this.#keep(missing);
    const readings = kit_ids.map((kit_id) => this.#kept.get(kit_id));
    const found: ListedKit[] = [];
    for (const [i, kit_id] of kit_ids.entries()) {
      const listed = (await readings[i])?.get(kit_id);
      if (listed) found.push(listed);
    }
    return found;
  }

  #keep(kit_ids: readonly string[]): void {
    const reading: Reading = this.#read(kit_ids).then(
      (listed) => new Map(listed.map((each) => [each.kit.id, each])),
    );
    for (const kit_id of kit_ids) this.#kept.set(kit_id, reading);
    // Those who wait for it see the failure; later ones read again.
    reading.catch(() => {
      for (const kit_id of kit_ids) if (this.#kept.get(kit_id) === reading) this.#kept.delete(kit_id);
    });
  }

  #begin(): AbortController {
    const following = new AbortController();
    const { signal } = following;
    this.#changes.subscribeAll((news) => {
      for (const { kind, kit_id } of news) if (summary_kinds.has(kind)) this.#changed(kit_id);
    }, signal);
    every(pace_ms / turns, signal, () => this.#next());
    return following;
  }

  #changed(kit_id: string): void {
    // A reading that is on its way may be from before the change.
    this.#kept.delete(kit_id);
    for (const group of this.#followers) for (const { onChange } of group) onChange(kit_id);
  }

  #next(): void {
    this.#turn = (this.#turn + 1) % turns;
    // Some of a summary changes with time alone.
    if (this.#turn === 0) this.#kept.clear();
    for (const { onTurn } of this.#followers[this.#turn] ?? []) onTurn();
  }

  #leave(follower: Follower): void {
    for (const group of this.#followers) group.delete(follower);
    if (this.#followers.some(({ size }) => size > 0)) return;
    this.#following?.abort();
    this.#following = undefined;
    this.#kept.clear();
  }
}
