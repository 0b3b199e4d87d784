/** What is known of the missions, fences and rally points that a vehicle has stored, and its feed `mission`. */
import type { z } from 'zod';
import type { droneFeeds } from '../../../src/contract/drone-feeds.ts';
import type { Autopilot } from '../reports/kind.ts';
import type { Messages } from '../wire/messages.ts';
import { itemNumber, mission_kinds, type MissionKind } from './mission-kinds.ts';

type MissionFeed = z.output<typeof droneFeeds.mission>;
type Current = Messages['MISSION_CURRENT'];

/** Read completely. */
interface Known {
  /** Without the home of an ArduPilot. */
  readonly count: number;
  readonly digest: string;
  readonly read_ms: number;
  /** Of a fence. */
  readonly items: readonly Messages['MISSION_ITEM_INT'][];
  /** The vehicle's own id of it; 0: not reported. */
  id: number;
}

interface FenceLimits {
  readonly values: ReadonlyMap<string, number>;
  readonly read_ms: number;
}

/** The vehicle reports its new state once a second or more rarely. */
const settle_ms = 5_000;
/** `total` of a vehicle without a mission. */
const total_none = 65_535;
const states = [null, 'no_mission', 'not_started', 'active', 'paused', 'complete'] as const;
const id_fields = { mission: 'mission_id', fence: 'fence_id', rally: 'rally_points_id' } as const;

export class StoredMissions {
  readonly #known = new Map<MissionKind, Known>();
  #current: Current | undefined;
  /** Number of the item that was reached last, from 1. */
  #reached: number | undefined;
  #autopilot: Autopilot = 'other';
  /** The parameters that limit its fence, by name, as last read. */
  limits: FenceLimits | undefined;

  /** Remembers what was read from the vehicle. */
  remember(
    kind: MissionKind,
    { count, digest, items }: Pick<Known, 'count' | 'digest' | 'items'>,
    now_ms: number,
  ): void {
    const kept = kind === 'fence' ? items : [];
    this.#known.set(kind, { count, digest, items: kept, read_ms: now_ms, id: 0 });
  }

  /** The items of its fence; undefined while they are not known. */
  get fence(): Known['items'] | undefined {
    return this.#known.get('fence')?.items;
  }

  /** Forgets it: another station may have changed it, or the vehicle restarted. */
  forget(kind?: MissionKind): void {
    if (kind === undefined) {
      this.#known.clear();
      this.limits = undefined;
      this.#current = undefined;
      this.#reached = undefined;
    } else this.#known.delete(kind);
  }

  digest(kind: MissionKind): string | undefined {
    return this.#known.get(kind)?.digest;
  }

  /** `MISSION_ITEM_REACHED`: the items already flown, also for a vehicle that reports no mission state. */
  reached(seq: number, autopilot: Autopilot): void {
    this.#reached = itemNumber(seq, autopilot);
  }

  /** The vehicle reports other ids or another number of items when another station has changed them. */
  receive(current: Current, autopilot: Autopilot, now_ms: number): void {
    this.#current = current;
    this.#autopilot = autopilot;
    // It goes to an earlier item.
    if (this.#reached !== undefined && itemNumber(current.seq, autopilot) < this.#reached)
      this.#reached = undefined;
    for (const kind of mission_kinds) {
      const known = this.#known.get(kind);
      if (!known) continue;
      const id = current[id_fields[kind]];
      if (now_ms - known.read_ms < settle_ms) known.id = id;
      else {
        const has_other_count = kind === 'mission' && (totalOf(current) ?? known.count) !== known.count;
        if (id !== known.id || has_other_count) this.#known.delete(kind);
      }
    }
  }

  /** Returns undefined until the vehicle has reported its mission or it was read. */
  feed(): MissionFeed | undefined {
    if (!this.#current && this.#known.size === 0) return undefined;
    return {
      ...this.#progress(),
      digest: this.digest('mission') ?? null,
      fence_digest: this.digest('fence') ?? null,
      rally_digest: this.digest('rally') ?? null,
    };
  }

  #progress(): Pick<MissionFeed, 'count' | 'current' | 'progress_pct' | 'state'> {
    const current = this.#current;
    const known = this.#known.get('mission')?.count ?? null;
    if (!current) return { count: known, current: null, progress_pct: null, state: null };
    const count = totalOf(current) ?? known;
    // A PX4 whose mission was removed reports that it is complete.
    const state = count === 0 ? 'no_mission' : (states[current.mission_state] ?? null);
    const item = count === null ? null : itemOf(current, this.#autopilot, count);
    return {
      count,
      current: item,
      progress_pct: progressOf(state, behindOf(item, this.#reached), count),
      state,
    };
  }
}

/** Number of items without the home of an ArduPilot; undefined where the vehicle does not report it. */
function totalOf({ total, mission_state }: Current): number | undefined {
  if (total === total_none || states[mission_state] === 'no_mission') return 0;
  return total === 0 ? undefined : total;
}

/** Returns null while it is at none. */
function itemOf({ seq }: Current, autopilot: Autopilot, count: number): number | null {
  const item = itemNumber(seq, autopilot);
  return item < 1 || count === 0 ? null : Math.min(item, count);
}

/** Returns the number of items that are behind the vehicle. An item may be reached and still be the current one. */
function behindOf(item: number | null, reached: number | undefined): Behind {
  if (item === null) return { items: null, isReported: false };
  const isReported = reached !== undefined && (reached === item || reached === item - 1);
  return { items: isReported ? reached : item - 1, isReported };
}

interface Behind {
  readonly items: number | null;
  /** The vehicle has reported that it reached the last of them. */
  readonly isReported: boolean;
}

function progressOf(
  state: (typeof states)[number],
  { items, isReported }: Behind,
  count: number | null,
): number | null {
  if (state === 'complete') return 100;
  if (state === 'not_started') return 0;
  const isUnderway = state === 'active' || state === 'paused' || (state === null && isReported);
  if (!isUnderway || items === null || !count) return null;
  return Math.round((100 * Math.min(items, count)) / count);
}
