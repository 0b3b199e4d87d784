/** What is known of the missions, fences and rally points that a vehicle has stored, and its feed `mission`. */
import type { z } from 'zod';
import type { droneFeeds } from '../../../src/contract/feeds.ts';
import type { Autopilot } from '../vehicles/kind.ts';
import type { Messages } from '../wire/messages.ts';
import { mission_kinds, type MissionKind } from './kinds.ts';

type MissionFeed = z.output<typeof droneFeeds.mission>;
type Current = Messages['MISSION_CURRENT'];

/** Read completely. */
interface Known {
  /** Without the home of an ArduPilot. */
  readonly count: number;
  readonly digest: string;
  readonly read_ms: number;
  /** The vehicle's own id of it; 0: not reported. */
  id: number;
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
  #autopilot: Autopilot = 'other';

  /** Remembers what was read from the vehicle. */
  remember(kind: MissionKind, { count, digest }: Pick<Known, 'count' | 'digest'>, now_ms: number): void {
    this.#known.set(kind, { count, digest, read_ms: now_ms, id: 0 });
  }

  /** Forgets it: another station may have changed it, or the vehicle restarted. */
  forget(kind?: MissionKind): void {
    if (kind === undefined) {
      this.#known.clear();
      this.#current = undefined;
    } else this.#known.delete(kind);
  }

  digest(kind: MissionKind): string | undefined {
    return this.#known.get(kind)?.digest;
  }

  /** The vehicle reports other ids or another number of items when another station has changed them. */
  receive(current: Current, autopilot: Autopilot, now_ms: number): void {
    this.#current = current;
    this.#autopilot = autopilot;
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
    const state = states[current.mission_state] ?? null;
    const item = count === null ? null : itemOf(current, this.#autopilot, count);
    return { count, current: item, progress_pct: progressOf(state, item, count), state };
  }
}

/** Number of items without the home of an ArduPilot; undefined where the vehicle does not report it. */
function totalOf({ total, mission_state }: Current): number | undefined {
  if (total === total_none || states[mission_state] === 'no_mission') return 0;
  return total === 0 ? undefined : total;
}

/** Items count from 1, as in plan files. Item 0 of an ArduPilot is its home. */
function itemOf({ seq }: Current, autopilot: Autopilot, count: number): number | null {
  const item = autopilot === 'ardupilot' ? seq : seq + 1;
  return item < 1 || count === 0 ? null : Math.min(item, count);
}

function progressOf(
  state: (typeof states)[number],
  item: number | null,
  count: number | null,
): number | null {
  if (state === 'complete') return 100;
  if (state === 'not_started') return 0;
  if ((state !== 'active' && state !== 'paused') || item === null || !count) return null;
  return Math.round((100 * (item - 1)) / count);
}
