/** Collects what a socket has to send about the alarms of all kits of its key: those that last, then those that change. */
import { type AlarmResource, lasting_states } from '../api/alarm-resources.ts';
import { alarmResource } from '../api/views.ts';
import { summaries_at_once as alarms_at_once } from '../api/frames.ts';
import type { Changes } from '../changes.ts';
import { maySee, type Principal } from '../principal.ts';
import type { StoredAlarm } from '../stored/stored.ts';
import type { Store } from '../store/sql-store.ts';
import { type Following, pending_max } from './kit-follower.ts';

export interface AlarmFollowerParts extends Following {
  readonly principal: Principal;
  readonly store: Pick<Store, 'alarms'>;
  readonly changes: Changes;
}

interface AlarmsFrame {
  readonly type: 'alarms';
  readonly alarms: readonly AlarmResource[];
  readonly first: boolean;
  readonly more: boolean;
  readonly [field: string]: unknown;
}

export class AlarmFollower {
  readonly #parts: AlarmFollowerParts;
  readonly #pending = new Map<string, StoredAlarm>();
  /** The last one of the list that was sent; `start`: none was; undefined: the list is complete. */
  #after: StoredAlarm | 'start' | undefined = 'start';

  constructor(parts: AlarmFollowerParts) {
    this.#parts = parts;
    const { principal, changes, wake, signal } = parts;
    changes.subscribeAll((news) => {
      const before = this.#pending.size;
      for (const change of news)
        if (change.kind === 'alarm' && maySee(principal, change.kit_id))
          this.#pending.set(change.alarm.alarm_id, change.alarm);
      // A reader that is so far behind gets the list again, and one that has alarms of a removed kit.
      const isOver = news.some(({ kind, kit_id }) => kind === 'kit_gone' && maySee(principal, kit_id));
      if (isOver || this.#pending.size > pending_max) {
        this.#pending.clear();
        this.#after = 'start';
      }
      if (isOver || this.#pending.size !== before) wake();
    }, signal);
  }

  get isDue(): boolean {
    return !this.#parts.signal.aborted && (this.#after !== undefined || this.#pending.size > 0);
  }

  async next(): Promise<AlarmsFrame> {
    const after = this.#after;
    if (after === undefined) {
      const some = [...this.#pending.values()].slice(0, alarms_at_once);
      for (const { alarm_id } of some) this.#pending.delete(alarm_id);
      return frameOf(some, { first: false, more: false });
    }
    const { store, principal, inTurn } = this.#parts;
    const found = await inTurn(async () =>
      store.alarms({
        kits: principal.kits,
        states: lasting_states,
        after: after === 'start' ? undefined : after,
        limit: alarms_at_once + 1,
        now_ms: Date.now(),
      }),
    );
    const some = found.slice(0, alarms_at_once);
    const more = found.length > some.length;
    // A change meanwhile may have called for a new list.
    if (this.#after === after) this.#after = more ? some.at(-1) : undefined;
    return frameOf(some, { first: after === 'start', more });
  }
}

function frameOf(
  some: readonly StoredAlarm[],
  about: { readonly first: boolean; readonly more: boolean },
): AlarmsFrame {
  const now_ms = Date.now();
  return { type: 'alarms', alarms: some.map((alarm) => alarmResource(alarm, now_ms)), ...about };
}
