/** Collects the summaries that a socket has to send: of all kits of its key first, then of changed kits, once a second. */
import type { Principal } from '../access/principal.ts';
import { maySee } from '../access/principal.ts';
import { type FleetServerFrame, summaries_at_once } from '../api/fleet-frames.ts';
import type { KitResource } from '../api/resources.ts';
import type { ListedKit } from '../kit-list.ts';
import type { InTurn } from '../../platform/semaphore.ts';
import type { SharedSummaries } from './shared-summaries.ts';

export type SummaryFrame = Omit<Extract<FleetServerFrame, { type: 'summaries' }>, 'seq' | 'time'>;

/** Kits of the first list that are read at once: of a slow reader, the service holds no more summaries, and the ids of the others. */
export const read_at_once = 500;

export interface SummaryFollowerParts {
  readonly principal: Principal;
  readonly shared: SharedSummaries;
  readonly idsOf: (principal: Principal) => Promise<readonly string[]>;
  readonly list: (principal: Principal, kit_ids: readonly string[]) => Promise<readonly ListedKit[]>;
  /** Waits for the turn of the key before the first list is read. */
  readonly inTurn: InTurn;
  /** Called when something is due. */
  readonly wake: () => void;
  readonly signal: AbortSignal;
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
    return { type: 'summaries', kits: this.#noted(await this.#listed(some)), left: 0 };
  }

  async #readMore(): Promise<void> {
    const { idsOf, principal, signal } = this.#parts;
    if (!this.#unread) {
      this.#changed.clear();
      // The subscription may have ended.
      this.#unread = signal.aborted ? [] : [...(await idsOf(principal))];
    }
    const some = this.#unread.splice(0, read_at_once);
    if (some.length > 0) this.#unsent = this.#noted(await this.#listed(some));
  }

  async #listed(kit_ids: readonly string[]): Promise<readonly ListedKit[]> {
    const { list, principal, shared } = this.#parts;
    const listed = await shared.of(kit_ids);
    // Only the key names a kit that is not stored.
    return listed.length === kit_ids.length ? listed : list(principal, kit_ids);
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
