/** The alarms of one kit while what was observed is applied to them, in order. Pure: `alarm-store.ts` reads and writes the rows. */
import { randomUUID } from 'node:crypto';
import type { JsonObject } from '../../contract/json.ts';
import { alarmSeverities, type AlarmSeverity } from '../severity.ts';
import type { StoredAlarm } from '../stored/stored.ts';

/** An alarm that comes back within this time is the same: a flapping link is one alarm with a count (alerta#156). */
export const again_ms = 600_000;
/** Open alarms of a kit: a hostile one could name new things without end. */
const open_max = 1_024;
/** Assets that go offline within this time are one alarm, whatever their parents. */
const together_ms = 60_000;

/** What begins. */
export interface Beginning extends Pick<StoredAlarm, 'what' | 'thing' | 'severity'> {
  readonly time_ms: number;
  readonly subject?: string | undefined;
  readonly assets?: readonly string[];
  readonly value?: number | undefined;
  readonly message?: JsonObject;
  readonly ends_ms?: number | null;
}

export interface OfflineAsset {
  readonly asset_id: string;
  readonly parent_id: string | null;
  readonly time_ms: number;
}

/** `raised`: it became graver. */
export interface Transition {
  readonly kind: 'opened' | 'raised' | 'closed';
  readonly alarm: StoredAlarm;
}

export class KitAlarms {
  readonly #kit_id: string;
  readonly #now_ms: number;
  readonly #all: Map<string, StoredAlarm>;
  readonly #changed = new Set<string>();
  readonly transitions: Transition[] = [];

  /** `stored`: those that are open, muted, or were closed lately. */
  constructor(kit_id: string, stored: readonly StoredAlarm[], now_ms: number) {
    this.#kit_id = kit_id;
    this.#now_ms = now_ms;
    this.#all = new Map(stored.map((alarm) => [alarm.alarm_id, alarm]));
  }

  get changed(): readonly StoredAlarm[] {
    return [...this.#changed].flatMap((id) => this.#all.get(id) ?? []);
  }

  get open(): readonly StoredAlarm[] {
    return [...this.#all.values()].filter(({ closed_ms }) => closed_ms === null);
  }

  isOpen({ what, thing }: Pick<StoredAlarm, 'what' | 'thing'>): boolean {
    return this.open.some((alarm) => alarm.what === what && alarm.thing === thing);
  }

  isMuted({ what, thing }: Pick<StoredAlarm, 'what' | 'thing'>): boolean {
    return [...this.#all.values()].some(
      (alarm) => alarm.what === what && alarm.thing === thing && (alarm.muted_until_ms ?? 0) > this.#now_ms,
    );
  }

  /** Opens an alarm, or makes the open one as grave and as new as this. Returns false where it was so. */
  begin(beginning: Beginning): boolean {
    const {
      what,
      thing,
      severity,
      time_ms,
      subject = null,
      assets = [],
      value = null,
      ends_ms = null,
    } = beginning;
    const { message = null } = beginning;
    const fields = { subject, severity, value, message, ends_ms };
    const same = [...this.#all.values()].filter((alarm) => alarm.what === what && alarm.thing === thing);
    const open = same.find(({ closed_ms }) => closed_ms === null);
    if (open) return this.#renew(open, fields, time_ms);
    const before = same.find((alarm) => this.#isSame(alarm, time_ms));
    if (before) {
      const { count, last_ms } = before;
      const again = { count: count + 1, last_ms: Math.max(last_ms, time_ms), closed_ms: null };
      const alarm = this.#put(before, { ...fields, assets, ...again, ...graver(before, severity) });
      this.#note('opened', alarm);
      return true;
    }
    if (this.open.length >= open_max) return false;
    const unseen = { acknowledged_by: null, acknowledged_ms: null, muted_until_ms: null, note: null };
    const ids = { kit_id: this.#kit_id, alarm_id: randomUUID(), what, thing };
    const times = { since_ms: time_ms, last_ms: time_ms, closed_ms: null, changed_ms: this.#now_ms };
    const made = { ...ids, ...fields, ...times, ...unseen, assets, count: 1, revision: 0 };
    this.#note('opened', this.#put(made, {}));
    return true;
  }

  end(alarm: StoredAlarm, time_ms: number): void {
    const closed_ms = Math.max(alarm.last_ms, time_ms);
    this.#note('closed', this.#put(alarm, { closed_ms, ends_ms: null }));
  }

  /** Ends those that nothing else ends. */
  endDue(): void {
    for (const alarm of this.open)
      if (alarm.ends_ms !== null && alarm.ends_ms <= this.#now_ms) this.end(alarm, alarm.ends_ms);
  }

  /** Ends the open alarm of this thing. Returns false where there is none. */
  endOf({ what, thing }: Pick<StoredAlarm, 'what' | 'thing'>, time_ms: number): boolean {
    const alarm = this.open.find((each) => each.what === what && each.thing === thing);
    if (alarm) this.end(alarm, time_ms);
    return alarm !== undefined;
  }

  /**
   * One alarm for all that a lost radio takes with it: an asset below one that is offline, or above, and what goes offline within
   * the same minute. `backAt`: since when an asset is not offline;
   * undefined: nothing was reported of it.
   */
  followAssets(offline: readonly OfflineAsset[], { mayBegin, backAt }: AssetRules): void {
    const byId = new Map(offline.map((asset) => [asset.asset_id, asset]));
    for (const alarm of this.#ofAssets()) {
      const left = alarm.assets.filter((id) => byId.has(id) || backAt(id) === undefined);
      if (left.length === alarm.assets.length) continue;
      const back_ms = Math.max(...alarm.assets.map((id) => (byId.has(id) ? 0 : (backAt(id) ?? 0))));
      if (left.length === 0) this.end(alarm, back_ms);
      else this.#put(alarm, { assets: left });
    }
    const above = (id: string, seen: ReadonlySet<string> = new Set()): readonly string[] => {
      const parent = byId.get(id)?.parent_id ?? undefined;
      if (parent === undefined || !byId.has(parent) || seen.has(parent)) return [];
      return [parent, ...above(parent, new Set([...seen, parent]))];
    };
    const known = new Set(this.#ofAssets().flatMap(({ assets }) => assets));
    const depth = new Map(offline.map(({ asset_id }) => [asset_id, above(asset_id).length]));
    const depthOf = ({ asset_id }: OfflineAsset): number => depth.get(asset_id) ?? 0;
    const lost = offline
      .filter((asset) => !known.has(asset.asset_id) && mayBegin(asset))
      .sort((a, b) => depthOf(a) - depthOf(b) || a.time_ms - b.time_ms || (a.asset_id < b.asset_id ? -1 : 1));
    for (const asset of lost) this.#lose(asset, above);
  }

  #lose({ asset_id, time_ms }: OfflineAsset, above: (id: string) => readonly string[]): void {
    const causes = above(asset_id);
    const isCauseOf = (id: string): boolean => above(id).includes(asset_id);
    const joined = this.#ofAssets().find(
      ({ assets, last_ms }) =>
        assets.some((id) => causes.includes(id) || isCauseOf(id)) ||
        Math.abs(time_ms - last_ms) <= together_ms,
    );
    if (!joined) {
      this.begin({ what: 'asset', thing: asset_id, severity: 'warning', assets: [asset_id], time_ms });
      return;
    }
    const isCause = joined.assets.some(isCauseOf);
    const assets = isCause ? [asset_id, ...joined.assets] : [...joined.assets, asset_id];
    this.#put(joined, { assets, last_ms: Math.max(joined.last_ms, time_ms) });
  }

  #ofAssets(): readonly StoredAlarm[] {
    return this.open.filter(({ what }) => what === 'asset');
  }

  #isSame({ closed_ms, muted_until_ms }: StoredAlarm, time_ms: number): boolean {
    return time_ms - (closed_ms ?? 0) <= again_ms || (muted_until_ms ?? 0) > this.#now_ms;
  }

  #renew(
    open: StoredAlarm,
    fields: Pick<StoredAlarm, 'subject' | 'severity' | 'value' | 'message' | 'ends_ms'>,
    time_ms: number,
  ): boolean {
    const rank = alarmSeverities.indexOf(fields.severity) - alarmSeverities.indexOf(open.severity);
    // One that nothing ends happens each time anew.
    const happens = fields.ends_ms !== null;
    if (rank === 0 && !happens && sayingOf(open) === sayingOf(fields)) return false;
    const isNews = rank > 0 || happens;
    const alarm = this.#put(open, {
      ...fields,
      ...(isNews && { last_ms: Math.max(open.last_ms, time_ms) }),
      ...(happens && { count: open.count + 1 }),
      ...graver(open, fields.severity),
    });
    if (isNews) this.#note(rank > 0 ? 'raised' : 'opened', alarm);
    return true;
  }

  #put(alarm: StoredAlarm, change: Partial<StoredAlarm>): StoredAlarm {
    const { alarm_id, revision } = alarm;
    const isFirst = !this.#changed.has(alarm_id);
    const put = { ...alarm, ...change, revision: revision + Number(isFirst), changed_ms: this.#now_ms };
    this.#all.set(alarm_id, put);
    this.#changed.add(alarm_id);
    return put;
  }

  #note(kind: Transition['kind'], alarm: StoredAlarm): void {
    if ((alarm.muted_until_ms ?? 0) <= this.#now_ms) this.transitions.push({ kind, alarm });
  }
}

export interface AssetRules {
  readonly mayBegin: (asset: OfflineAsset) => boolean;
  readonly backAt: (asset_id: string) => number | undefined;
}

/** Somebody who knows of it knows of its return, but not that it is graver (alerta#263). */
function graver({ severity }: StoredAlarm, now: AlarmSeverity): Partial<StoredAlarm> {
  const isGraver = alarmSeverities.indexOf(now) > alarmSeverities.indexOf(severity);
  return isGraver ? { acknowledged_by: null, acknowledged_ms: null } : {};
}

/** What distinguishes two reports of one state: not their time. */
function sayingOf({ subject, value, message }: Pick<StoredAlarm, 'subject' | 'value' | 'message'>): string {
  const { timestamp: _, ...said } = message ?? {};
  return JSON.stringify([subject, value, said]);
}
