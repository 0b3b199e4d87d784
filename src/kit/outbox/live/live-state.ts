/**
 * Where a message of this run is, and what moves it: a pure function of state and event. A message has one owner at a time:
 * the live queue, the uplink, the committer, or the store, which hands out again what is on disk and was released.
 */

/** `due`: the next commit writes it. `writing`: in a commit that has not been answered. */
export type DiskState = 'no' | 'due' | 'writing' | 'yes';

/**
 * `nowhere`: not in memory's hands; the store hands it out once it is on disk. `held`: queued as soon as it is on disk. `queued`:
 * in the live queue. `sent`: published, not acknowledged. `broker`: the broker acknowledged it. `cloud`: the cloud did, too.
 */
export type Place = 'nowhere' | 'held' | 'queued' | 'sent' | 'broker' | 'cloud';

export interface LiveState {
  readonly disk: DiskState;
  readonly place: Place;
  /** The commit that wrote it left it to the main thread: the store hands it out only after a release. */
  readonly is_held: boolean;
}

export const live_events = [
  'accepted',
  /** A commit takes it now, or is made again with it. */
  'commit_began',
  'written',
  /** The disk refused the commit. */
  'refused',
  /** The disk has not answered for long, or refuses: what may be sent from memory is. */
  'disk_away',
  /** The uplink took it out of the queue. */
  'handed_out',
  /** It did not reach the broker, or waited too long in the queue. */
  'taken_back',
  /** The queue is full, and the disk refuses. */
  'overflowed',
  /** It waits for its PUBACK for long, or has to pass through the disk. */
  'spilled',
  'acknowledged',
  /** The PUBACK of a message that the cloud had acknowledged before. */
  'acknowledged_last',
  /** The cloud acknowledged it after the PUBACK. */
  'confirmed',
  /** A newer value of its retained topic was sent. */
  'superseded',
] as const;
export type LiveEvent = (typeof live_events)[number];

/** What a transition depends on beside the state. */
export interface Circumstances {
  /** Its lane promises the disk. */
  readonly is_sync: boolean;
  readonly is_retained: boolean;
  /** The queue takes it: there is a connection, room, and no pause of its kind of topic. */
  readonly can_queue: boolean;
  /** It may leave before it is on disk. */
  readonly can_skip_disk: boolean;
  readonly is_disk_failing: boolean;
  /** The PUBACK alone does not release what its lane has on disk. */
  readonly needs_cloud: boolean;
}

export type LiveEffect =
  /** Put it into the live queue. */
  | 'queue'
  /** Give it to the committer. */
  | 'write'
  /** The store may hand it out. */
  | 'release'
  /** Its lane has something new on disk. */
  | 'touch'
  /** It counts as delivered, and never was on disk. */
  | 'deliver'
  /** Remove the row from the disk: delivered. */
  | 'remove'
  /** The row stays on disk until the cloud names it. */
  | 'unconfirmed'
  /** Remove the row from the disk: superseded. */
  | 'supersede'
  /** It is dropped. */
  | 'give_up';

export interface Step {
  readonly state: LiveState;
  readonly effects: readonly LiveEffect[];
}

export const first_state: LiveState = { disk: 'no', place: 'nowhere', is_held: false };

/** The state after an event, and what has to be done. An event that does not concern a state leaves it as it is. */
export function step(state: LiveState, event: LiveEvent, about: Circumstances): Step {
  return transitions[event](state, about);
}

export function isAcknowledged({ place }: LiveState): boolean {
  return place === 'broker' || place === 'cloud';
}

type Transition = (state: LiveState, about: Circumstances) => Step;

const transitions: Readonly<Record<LiveEvent, Transition>> = {
  accepted: (state, about) => {
    const { is_sync, can_queue, can_skip_disk, is_disk_failing } = about;
    const is_sent_now = can_queue && (is_sync ? is_disk_failing && can_skip_disk : true);
    if (!is_sync && is_sent_now) return to(state, { place: 'queued' }, 'queue');
    const due = { disk: 'due' } as const;
    return is_sent_now ? to(state, { ...due, place: 'queued' }, 'write', 'queue') : to(state, due, 'write');
  },

  commit_began: (state, { is_sync, can_queue }) => {
    // The same commit once more: what was sent meanwhile is not for the store to hand out.
    if (state.disk === 'writing') return to(state, { is_held: state.place !== 'nowhere' });
    if (state.disk !== 'due') return stays(state);
    const place = state.place === 'nowhere' && is_sync && can_queue ? 'held' : state.place;
    return to(state, { disk: 'writing', place, is_held: place !== 'nowhere' });
  },

  written: (state, { can_queue, needs_cloud }) => {
    if (state.disk !== 'writing') return stays(state);
    const { place, is_held } = state;
    const stored = { disk: 'yes' } as const;
    switch (place) {
      case 'broker':
        return to(state, stored, needs_cloud ? 'unconfirmed' : 'remove');
      case 'cloud':
        return to(state, stored, 'remove');
      case 'held':
        if (can_queue) return to(state, { ...stored, place: 'queued' }, 'queue');
        return to(state, { ...stored, place: 'nowhere' }, 'release');
      case 'nowhere':
        return to(state, stored, is_held ? 'release' : 'touch');
      case 'queued':
        // The store hands out what no commit held: it leaves the queue.
        return is_held ? to(state, stored) : to(state, { ...stored, place: 'nowhere' }, 'touch');
      case 'sent':
        return to(state, stored);
      default:
        return place satisfies never;
    }
  },

  refused: (state, about) => {
    if (state.disk !== 'writing') return stays(state);
    const due = { ...state, disk: 'due', is_held: false } as const;
    if (isAcknowledged(state)) return acknowledgedWithoutDisk(due, about);
    return sentFromMemory(due, about);
  },

  disk_away: (state, about) => sentFromMemory(state, about),

  handed_out: (state) => (state.place === 'queued' ? to(state, { place: 'sent' }) : stays(state)),

  taken_back: (state) => {
    if (!isOnItsWay(state)) return stays(state);
    if (state.disk === 'no') return to(state, { disk: 'due', place: 'nowhere' }, 'write');
    return state.disk === 'yes'
      ? to(state, { place: 'nowhere' }, 'release')
      : to(state, { place: 'nowhere' });
  },

  overflowed: (state) => {
    if (state.place !== 'queued') return stays(state);
    if (state.disk === 'no') return to(state, { place: 'nowhere' }, 'give_up');
    return state.disk === 'yes'
      ? to(state, { place: 'nowhere' }, 'release')
      : to(state, { place: 'nowhere' });
  },

  spilled: (state) =>
    state.disk === 'no' && state.place === 'sent' ? to(state, { disk: 'due' }, 'write') : stays(state),

  acknowledged: (state, about) => acknowledged(state, 'broker', about),

  acknowledged_last: (state, about) => acknowledged(state, 'cloud', about),

  confirmed: (state, about) => {
    if (state.place !== 'broker' || state.disk === 'no' || state.disk === 'yes') return stays(state);
    const confirmed = { ...state, place: 'cloud' } as const;
    return state.disk === 'due' ? acknowledgedWithoutDisk(confirmed, about) : to(confirmed, {});
  },

  superseded: (state) => {
    if (!isOnItsWay(state)) return stays(state);
    if (state.disk === 'no') return to(state, { disk: 'due', place: 'nowhere' }, 'write');
    // A value that is not on disk yet is superseded during its commit.
    return state.disk === 'yes'
      ? to(state, { place: 'nowhere' }, 'supersede')
      : to(state, { place: 'nowhere' });
  },
};

function acknowledged(state: LiveState, place: 'broker' | 'cloud', about: Circumstances): Step {
  if (isAcknowledged(state)) return stays(state);
  const after = { ...state, place };
  switch (state.disk) {
    case 'no':
      return to(after, {}, 'deliver');
    case 'due':
      return acknowledgedWithoutDisk(after, about);
    case 'writing':
      return to(after, {});
    case 'yes':
      return to(after, {}, place === 'broker' && about.needs_cloud ? 'unconfirmed' : 'remove');
    default:
      return state.disk satisfies never;
  }
}

/**
 * A retained value is written nevertheless: it replaces the older value on disk. A sync message that only the cloud can release is written
 * too: a broker that dies now would lose it. A lazy one is kept in memory for that case (`Replay`).
 */
function acknowledgedWithoutDisk(
  state: LiveState,
  { is_retained, is_sync, needs_cloud }: Circumstances,
): Step {
  const is_written = is_retained || (is_sync && state.place === 'broker' && needs_cloud);
  return is_written ? to(state, {}) : to(state, { disk: 'no' }, 'deliver');
}

/** A message that the disk keeps waiting goes to the broker, if it may. */
function sentFromMemory(state: LiveState, { can_queue, can_skip_disk }: Circumstances): Step {
  const waits = state.place === 'nowhere' || state.place === 'held';
  if (!waits || (state.disk !== 'due' && state.disk !== 'writing')) return to(state, {});
  if (can_queue && can_skip_disk) return to(state, { place: 'queued' }, 'queue');
  return to(state, { place: state.disk === 'due' ? 'nowhere' : state.place });
}

function isOnItsWay({ place }: LiveState): boolean {
  return place === 'queued' || place === 'sent';
}

function stays(state: LiveState): Step {
  return { state, effects: [] };
}

function to(state: LiveState, change: Partial<LiveState>, ...effects: readonly LiveEffect[]): Step {
  return { state: { ...state, ...change }, effects };
}
