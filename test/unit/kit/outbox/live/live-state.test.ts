/** The state machine of a message, over all pairs of state and event, and all circumstances. */
import { describe, expect, it } from 'vitest';
import {
  type Circumstances,
  type DiskState,
  first_state,
  isAcknowledged,
  live_events,
  type LiveEvent,
  type LiveState,
  type Place,
  step,
  type Step,
} from '../../../../../src/kit/outbox/live/live-state.ts';

const disks: readonly DiskState[] = ['no', 'due', 'writing', 'yes'];
const places: readonly Place[] = ['nowhere', 'held', 'queued', 'sent', 'broker', 'cloud'];
const states: readonly LiveState[] = disks.flatMap((disk) =>
  places.flatMap((place) => [false, true].map((is_held) => ({ disk, place, is_held }))),
);

const names = [
  'is_sync',
  'is_retained',
  'can_queue',
  'can_skip_disk',
  'is_disk_failing',
  'needs_cloud',
] as const satisfies readonly (keyof Circumstances)[];

/** All that there are: a retained lane is a sync one and needs no cloud. */
const circumstances: readonly Circumstances[] = Array.from({ length: 2 ** names.length }, (_, bits) => {
  const [is_sync, is_retained, can_queue, can_skip_disk, is_disk_failing, needs_cloud] = names.map(
    (_name, at) => Math.floor(bits / 2 ** at) % 2 === 1,
  );
  return {
    is_sync: is_sync === true,
    is_retained: is_retained === true,
    can_queue: can_queue === true,
    can_skip_disk: can_skip_disk === true,
    is_disk_failing: is_disk_failing === true,
    needs_cloud: needs_cloud === true,
  };
}).filter(
  ({ is_sync, is_retained, needs_cloud }) => (is_sync || !is_retained) && !(is_retained && needs_cloud),
);

const alarm: Circumstances = {
  is_sync: true,
  is_retained: false,
  can_queue: true,
  can_skip_disk: true,
  is_disk_failing: false,
  needs_cloud: true,
};
const asset: Circumstances = { ...alarm, is_retained: true, needs_cloud: false };
const feed: Circumstances = { ...alarm, is_sync: false, needs_cloud: false };
const offline = { can_queue: false } as const;
const failing = { is_disk_failing: true } as const;

interface Pair extends Step {
  readonly before: LiveState;
  readonly event: LiveEvent;
  readonly about: Circumstances;
}

const pairs: readonly Pair[] = states.flatMap((before) =>
  live_events.flatMap((event) =>
    circumstances.map((about) => ({ before, event, about, ...step(before, event, about) })),
  ),
);

const nameOf = ({ disk, place, is_held }: LiveState): string => `${disk} ${place}${is_held ? ' held' : ''}`;
const textOf = ({ before, event, state, effects }: Pair): string =>
  `${nameOf(before)} -${event}-> ${nameOf(state)} ${effects.join(' ')}`;
const wrong = (isWrong: (pair: Pair) => boolean): readonly string[] => [
  ...new Set(pairs.filter(isWrong).map(textOf)),
];

describe('The state machine of a message, for each pair of state and event', () => {
  it('covers every state and every event', () => {
    expect(states).toHaveLength(48);
    expect(new Set(pairs.map(({ before, event }) => `${nameOf(before)} ${event}`)).size).toBe(
      48 * live_events.length,
    );
  });

  it('writes a message exactly when it becomes due, and only what is not on disk', () => {
    expect(
      wrong(
        ({ before, state, effects, event }) =>
          effects.includes('write') !== (before.disk === 'no' && state.disk === 'due') &&
          event !== 'accepted',
      ),
    ).toEqual([]);
  });

  it('queues a message exactly when its place becomes the queue, and only where the queue takes it', () => {
    const becomesQueued = ({ before, state }: Pair): boolean =>
      state.place === 'queued' && before.place !== 'queued';
    expect(
      wrong((pair) => pair.event !== 'accepted' && pair.effects.includes('queue') !== becomesQueued(pair)),
    ).toEqual([]);
    expect(wrong(({ effects, about }) => effects.includes('queue') && !about.can_queue)).toEqual([]);
  });

  it('sends nothing from memory that has to be on disk first', () => {
    expect(
      wrong(
        ({ state, effects, about }) =>
          effects.includes('queue') && about.is_sync && !about.can_skip_disk && state.disk !== 'yes',
      ),
    ).toEqual([]);
  });

  it('releases, removes and supersedes only rows on disk, and leaves them nowhere or acknowledged', () => {
    const of_disk = ['release', 'remove', 'unconfirmed', 'supersede'] as const;
    const isOfDisk = ({ effects }: Pair): boolean => of_disk.some((effect) => effects.includes(effect));
    expect(wrong((pair) => isOfDisk(pair) && pair.state.disk !== 'yes')).toEqual([]);
    expect(
      wrong((pair) => isOfDisk(pair) && pair.state.place !== 'nowhere' && !isAcknowledged(pair.state)),
    ).toEqual([]);
  });

  it('takes a message out of the books of memory once, and never one that a commit may hold', () => {
    const isGone = ({ effects }: Pair): boolean => effects.includes('deliver') || effects.includes('give_up');
    expect(wrong((pair) => isGone(pair) && pair.state.disk !== 'no')).toEqual([]);
    expect(wrong((pair) => isGone(pair) && pair.before.disk === 'yes')).toEqual([]);
    expect(
      wrong(
        ({ before, effects }) =>
          effects.includes('deliver') && isAcknowledged(before) && before.disk === 'no',
      ),
    ).toEqual([]);
  });

  it('counts only what the broker has as delivered', () => {
    const delivered = ['deliver', 'remove', 'unconfirmed'] as const;
    expect(
      wrong(
        (pair) => delivered.some((effect) => pair.effects.includes(effect)) && !isAcknowledged(pair.state),
      ),
    ).toEqual([]);
  });

  it('removes what needs the cloud only once the cloud has acknowledged it', () => {
    expect(
      wrong(
        ({ state, effects, about }) =>
          about.needs_cloud &&
          state.place === 'broker' &&
          (effects.includes('remove') || (effects.includes('deliver') && state.disk !== 'no')),
      ),
    ).toEqual([]);
  });

  it('never forgets an acknowledgement', () => {
    expect(
      wrong(
        ({ before, state, event }) =>
          event !== 'accepted' && isAcknowledged(before) && !isAcknowledged(state),
      ),
    ).toEqual([]);
  });

  it('changes nothing for an event that does not concern the state', () => {
    const changed = new Set(
      pairs
        .filter(({ before, state, effects }) => nameOf(before) !== nameOf(state) || effects.length > 0)
        .map(({ before, event }) => `${before.disk} ${event}`),
    );
    const inert: readonly string[] = [
      ...(['no', 'yes'] as const).map((disk) => `${disk} commit_began`),
      ...(['no', 'due', 'yes'] as const).flatMap((disk) => [`${disk} written`, `${disk} refused`]),
      ...(['no', 'yes'] as const).flatMap((disk) => [`${disk} disk_away`, `${disk} confirmed`]),
      ...(['due', 'writing', 'yes'] as const).map((disk) => `${disk} spilled`),
    ];
    expect(inert.filter((pair) => changed.has(pair))).toEqual([]);
  });
});

/** What the store may hand out: it is on disk, and not held. */
interface Walked {
  readonly state: LiveState;
  readonly is_store_owner: boolean;
}

/** All states that a lane can come to, from its acceptance on. */
function reachable(about: Circumstances): ReadonlyMap<string, Walked> {
  const found = new Map<string, Walked>();
  const [can, cannot] = [about, { ...about, ...offline }];
  const open: Walked[] = [can, cannot, { ...can, ...failing }].map((now) =>
    after({ state: first_state, is_store_owner: false }, step(first_state, 'accepted', now)),
  );
  for (let next = open.pop(); next; next = open.pop()) {
    const key = `${nameOf(next.state)} ${next.is_store_owner}`;
    if (found.has(key)) continue;
    found.set(key, next);
    for (const event of live_events) {
      if (event === 'accepted' || !isPossible(next.state, event)) continue;
      for (const now of [can, cannot]) open.push(after(next, step(next.state, event, now)));
    }
  }
  return found;
}

/** What a caller ensures: only what is queued is handed out, and only what was sent is acknowledged. */
function isPossible({ place }: LiveState, event: LiveEvent): boolean {
  if (event === 'acknowledged' || event === 'acknowledged_last') return place === 'sent';
  return event !== 'superseded' || place === 'sent';
}

function after({ is_store_owner }: Walked, { state, effects }: Step): Walked {
  const is_released = effects.includes('release') || effects.includes('touch');
  return { state, is_store_owner: is_store_owner || is_released };
}

describe('The state machine of a message, from its acceptance on', () => {
  const lanes = [
    ['alarm', alarm],
    ['alarm without acknowledgements of the cloud', { ...alarm, needs_cloud: false }],
    ['task report that leaves from disk only', { ...alarm, can_skip_disk: false }],
    ['asset', asset],
    ['feed', feed],
    ['feed with acknowledgements of the cloud', { ...feed, needs_cloud: true }],
  ] as const;

  it.each(lanes)('leaves no %s without an owner', (_name, about) => {
    const without = [...reachable(about).values()].filter(({ state, is_store_owner }) => {
      const { disk, place } = state;
      const has_committer = disk === 'due' || disk === 'writing';
      const has_uplink = place === 'queued' || place === 'sent' || isAcknowledged(state);
      return !has_committer && !has_uplink && !is_store_owner;
    });
    // Dropped for want of memory, or superseded on disk: the books have it.
    const ends = new Set(['no nowhere', 'yes nowhere', 'yes nowhere held']);
    expect(without.map(({ state }) => nameOf(state)).filter((name) => !ends.has(name))).toEqual([]);
    const stranded = pairs.filter(
      ({ before, state, effects }) =>
        before.place !== 'nowhere' &&
        state.place === 'nowhere' &&
        (state.disk === 'yes' || state.disk === 'no') &&
        effects.length === 0,
    );
    expect(stranded.map(textOf)).toEqual([]);
  });

  it.each(lanes)('has no %s in the live queue while the store may hand it out', (_name, about) => {
    const twice = [...reachable(about).values()].filter(
      ({ state, is_store_owner }) => is_store_owner && state.place === 'queued',
    );
    expect(twice.map(({ state }) => nameOf(state))).toEqual([]);
  });
});
