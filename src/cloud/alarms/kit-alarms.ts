/** The alarms of one kit while what was observed is applied to them, in order. Pure: `alarm-store.ts` reads and writes the rows. */
import { randomUUID } from 'node:crypto';
import type { JsonObject } from '../../contract/json.ts';
import { alarmSeverities, type AlarmSeverity } from '../severity.ts';
import { backOf } from '../api/views.ts';
import type { AssetEvent } from './conditions.ts';
import type { StoredAlarm } from '../stored/stored.ts';

/** An alarm that comes back within this time is the same: a flapping link is one alarm with a count (alerta#156). */
export const again_ms = 600_000;
/** Open alarms of a kit: a hostile one could name new things without end. */
const open_max = 1_024;
/** Assets that go offline within this time are one alarm, whatever their parents. */
const together_ms = 60_000;

const unseen = { acknowledged_by: null, acknowledged_ms: null };

/** What an alarm is about. */
export type Thing = Pick<StoredAlarm, 'what' | 'thing'>;

/** What begins. */
export interface Beginning extends Thing, Pick<StoredAlarm, 'severity'> {
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

/** `raised`: it became graver, or what has taken the others with it became known. */
export interface Transition {
  readonly kind: 'opened' | 'raised' | 'closed';
  readonly alarm: StoredAlarm;
  /** It lasts since it was muted, and is not muted any more. */
  readonly wasMuted?: boolean;
}

export class KitAlarms {
  readonly #kit_id: string;
  readonly #now_ms: number;
  readonly #all: Map<string, StoredAlarm>;
  readonly #changed = new Set<string>();
  readonly #transitions: Transition[] = [];

  /** `stored`: those that are open, muted, or were closed lately. */
  constructor(kit_id: string, stored: readonly StoredAlarm[], now_ms: number) {
    this.#kit_id = kit_id;
    this.#now_ms = now_ms;
    this.#all = new Map(stored.map((alarm) => [alarm.alarm_id, alarm]));
  }

  get changed(): readonly StoredAlarm[] {
    return [...this.#changed].flatMap((id) => this.#all.get(id) ?? []);
  }

  /** Each names all assets that its alarm has taken in by now. */
  get transitions(): readonly Transition[] {
    return this.#transitions.map((transition) => {
      const { alarm } = transition;
      const { assets } = this.#all.get(alarm.alarm_id) ?? alarm;
      return { ...transition, alarm: { ...alarm, assets } };
    });
  }

  get open(): readonly StoredAlarm[] {
    return [...this.#all.values()].filter(({ closed_ms }) => closed_ms === null);
  }

  /** All of this thing; at most one is open. */
  #of({ what, thing }: Thing): readonly StoredAlarm[] {
    return [...this.#all.values()].filter((alarm) => alarm.what === what && alarm.thing === thing);
  }

  openOf(about: Thing): StoredAlarm | undefined {
    return this.#of(about).find(({ closed_ms }) => closed_ms === null);
  }

  /** Whether webhooks are told of an event now. While its alarm is muted only of its end, and only if they know that it began. */
  isTold(about: Thing, isEnd: boolean): boolean {
    const muted = this.#of(about).find((alarm) => this.#isMuted(alarm));
    return muted === undefined || (isEnd && muted.closed_ms === null && muted.unheard !== 'opened');
  }

  /** Of an end: the gravest that webhooks were told of what ends. */
  severityOf(about: Thing, { edge, severity }: Pick<AssetEvent, 'edge' | 'severity'>): AlarmSeverity {
    return edge === 'ends' ? (this.openOf(about)?.notified ?? severity) : severity;
  }

  /** Opens an alarm, or makes the open one as grave and as new as this. Returns false where it was so. */
  begin(beginning: Beginning): boolean {
    const { what, thing, severity, time_ms, subject = null, assets = [] } = beginning;
    const { value = null, ends_ms = null, message = null } = beginning;
    const fields = { subject, severity, value, message, ends_ms };
    const open = this.openOf(beginning);
    if (open) return this.#renew(open, fields, time_ms);
    const before = this.#of(beginning).find((alarm) => this.#isSame(alarm, time_ms));
    if (before) {
      const again = { ...againOf(before, time_ms), ...fields, assets, ...graver(before, severity) };
      this.#note('opened', this.#put(before, again));
      return true;
    }
    if (this.open.length >= open_max) return false;
    const ids = { kit_id: this.#kit_id, alarm_id: randomUUID(), what, thing };
    const times = { since_ms: time_ms, last_ms: time_ms, closed_ms: null, changed_ms: this.#now_ms };
    const made = {
      ...ids,
      ...fields,
      ...times,
      ...unseen,
      muted_until_ms: null,
      unheard: null,
      notified: null,
      note: null,
      files: [],
      assets,
      count: 1,
      revision: 0,
    };
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

  /** Opens what lasts and was muted until now: also those who follow alarms wait for that (prometheus/alertmanager#578). */
  endMutes(): void {
    for (const alarm of this.open) {
      if (this.#isMuted(alarm)) continue;
      const { muted_until_ms, unheard } = alarm;
      const opened = muted_until_ms === null ? alarm : this.#put(alarm, { muted_until_ms: null });
      if (unheard !== null) this.#note(unheard, opened, true);
    }
  }

  /** Ends events of assets that were removed: nothing else would. */
  endOfGone(gone: readonly string[], time_ms: number): void {
    for (const alarm of this.open)
      if (alarm.what !== 'asset' && alarm.assets.some((id) => gone.includes(id))) this.end(alarm, time_ms);
  }

  /** Ends the open alarm of this thing. Returns false where there is none. */
  endOf(about: Thing, time_ms: number): boolean {
    const alarm = this.openOf(about);
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
      const turned = awayOf(alarm).filter((id) => !byId.has(id) && backAt(id) !== undefined);
      if (turned.length === 0) continue;
      const back = [...backOf(alarm), ...turned];
      const back_ms = Math.max(...turned.map((id) => backAt(id) ?? 0));
      if (back.length === alarm.assets.length) this.end({ ...alarm, message: null }, back_ms);
      else this.#put(alarm, { message: { back } });
    }
    const above = (id: string, seen: ReadonlySet<string> = new Set()): readonly string[] => {
      const parent = byId.get(id)?.parent_id ?? undefined;
      if (parent === undefined || !byId.has(parent) || seen.has(parent)) return [];
      return [parent, ...above(parent, new Set([...seen, parent]))];
    };
    const known = new Set(this.#ofAssets().flatMap(awayOf));
    const depth = new Map(offline.map(({ asset_id }) => [asset_id, above(asset_id).length]));
    const depthOf = ({ asset_id }: OfflineAsset): number => depth.get(asset_id) ?? 0;
    const lost = offline
      .filter((asset) => !known.has(asset.asset_id) && mayBegin(asset))
      .sort((a, b) => depthOf(a) - depthOf(b) || a.time_ms - b.time_ms || (a.asset_id < b.asset_id ? -1 : 1));
    for (const asset of lost) this.#lose(asset, above);
  }

  #lose(asset: OfflineAsset, above: (id: string) => readonly string[]): void {
    const { asset_id, time_ms } = asset;
    const causes = above(asset_id);
    const isCauseOf = (id: string): boolean => above(id).includes(asset_id);
    const of = this.#ofAssets();
    const around = of.find(({ assets }) => assets.some((id) => causes.includes(id)));
    if (around) {
      this.#take(around, asset, { merged: [], isCauseOf });
      return;
    }
    // What is away for longer was not lost with it, and may be known to somebody: it would hide this.
    const below = of
      .filter(({ assets, last_ms }) => assets.some(isCauseOf) && time_ms - last_ms <= again_ms)
      .sort((a, b) => a.since_ms - b.since_ms);
    const before = this.#lostBefore(asset);
    const again = before && this.#put(before, againOf(before, time_ms));
    const joined = again ?? below[0] ?? of.find(({ last_ms }) => Math.abs(time_ms - last_ms) <= together_ms);
    if (!joined) {
      this.begin({ what: 'asset', thing: asset_id, severity: 'warning', assets: [asset_id], time_ms });
      return;
    }
    const merged = below.filter(({ alarm_id }) => alarm_id !== joined.alarm_id);
    for (const alarm of merged) this.end(alarm, time_ms);
    const alarm = this.#take(joined, asset, { merged, isCauseOf });
    if (again) this.#note('opened', alarm);
    else if (alarm.assets[0] === asset_id) this.#note('raised', alarm);
  }

  /** Adds an asset to an alarm, before what it has taken with it. */
  #take(
    alarm: StoredAlarm,
    { asset_id, time_ms }: OfflineAsset,
    { merged, isCauseOf }: { merged: readonly StoredAlarm[]; isCauseOf: (id: string) => boolean },
  ): StoredAlarm {
    const isOther = (id: string): boolean => id !== asset_id;
    const others = [alarm, ...merged].flatMap(({ assets }) => assets).filter(isOther);
    const back = [alarm, ...merged].flatMap(backOf).filter(isOther);
    const isCause = others.some(isCauseOf);
    return this.#put(alarm, {
      ...(isCause && { thing: asset_id }),
      assets: isCause ? [asset_id, ...others] : [...others, asset_id],
      message: back.length === 0 ? null : { back },
      last_ms: Math.max(alarm.last_ms, time_ms),
    });
  }

  /** The alarm of an asset that is lost again, or of the one above it, whichever of them is missed first. */
  #lostBefore({ asset_id, parent_id, time_ms }: OfflineAsset): StoredAlarm | undefined {
    return [...this.#all.values()].find(
      (alarm) =>
        alarm.what === 'asset' &&
        (alarm.closed_ms === null
          ? alarm.thing === asset_id && backOf(alarm).includes(asset_id)
          : [asset_id, parent_id].includes(alarm.thing) && this.#isSame(alarm, time_ms)),
    );
  }

  #ofAssets(): readonly StoredAlarm[] {
    return this.open.filter(({ what }) => what === 'asset');
  }

  #isSame(alarm: StoredAlarm, time_ms: number): boolean {
    return time_ms - (alarm.closed_ms ?? 0) <= again_ms || this.#isMuted(alarm);
  }

  #isMuted({ muted_until_ms }: StoredAlarm): boolean {
    return (muted_until_ms ?? 0) > this.#now_ms;
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

  #note(kind: Transition['kind'], alarm: StoredAlarm, wasMuted = false): void {
    if (kind !== 'closed' && this.#isMuted(alarm)) {
      this.#put(alarm, { unheard: alarm.unheard ?? kind });
      return;
    }
    const isOver = kind === 'closed';
    const notified = gravest(alarm.notified, alarm.severity);
    const heard = this.#put(alarm, { unheard: null, notified: isOver ? null : notified });
    // Who was not told that it began is not told that it ended.
    if (!isOver || alarm.unheard !== 'opened')
      this.#transitions.push({
        kind,
        alarm: isOver ? { ...heard, notified: alarm.notified } : heard,
        wasMuted,
      });
  }
}

export interface AssetRules {
  readonly mayBegin: (asset: OfflineAsset) => boolean;
  readonly backAt: (asset_id: string) => number | undefined;
}

function awayOf(alarm: StoredAlarm): readonly string[] {
  const back = new Set(backOf(alarm));
  return alarm.assets.filter((id) => !back.has(id));
}

/** Of one that has not ended, somebody may know only what was left of it. */
function againOf({ count, last_ms, closed_ms, assets }: StoredAlarm, time_ms: number): Partial<StoredAlarm> {
  const isOver = closed_ms !== null;
  return {
    count: count + 1,
    last_ms: Math.max(last_ms, time_ms),
    closed_ms: null,
    assets: isOver ? [] : assets,
    ...(!isOver && time_ms - last_ms > again_ms && unseen),
  };
}

function gravest(one: AlarmSeverity | null, other: AlarmSeverity): AlarmSeverity {
  return one !== null && alarmSeverities.indexOf(one) > alarmSeverities.indexOf(other) ? one : other;
}

/** Somebody who knows of it knows of its return, but not that it is graver (alerta#263). */
function graver({ severity }: StoredAlarm, now: AlarmSeverity): Partial<StoredAlarm> {
  const isGraver = alarmSeverities.indexOf(now) > alarmSeverities.indexOf(severity);
  return isGraver ? unseen : {};
}

/** What distinguishes two reports of one state: not their time. */
function sayingOf({ subject, value, message }: Pick<StoredAlarm, 'subject' | 'value' | 'message'>): string {
  const { timestamp: _, ...said } = message ?? {};
  return JSON.stringify([subject, value, said]);
}
