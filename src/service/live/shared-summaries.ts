/** Reads the summaries of changed kits once for all sockets, and gives the sockets their turns. */
import { every } from '../../platform/time.ts';
import type { ListedKit } from '../kit-list.ts';
import type { Change } from '../store/store.ts';
import type { Changes } from './changes.ts';

/** Changes of a kit within this time are sent together. */
const pace_ms = 1_000;
/** Sockets take turns within that time, so that they do not write all at the same moment. */
const turns = 4;
/** Feed messages and commands change no summary. */
const summary_kinds: ReadonlySet<Change['kind']> = new Set(['kit', 'asset', 'asset_gone']);

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
