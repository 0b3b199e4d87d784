/** What the log and the status say while the buffer drops messages, and afterwards. */
import { beforeEach, expect, test } from 'vitest';
import { DropEpisodes, quiet_ms } from '../../../../../src/kit/outbox/live/drops.ts';
import { texts } from '../../../../../src/kit/outbox/texts.ts';

const lines: [object, string][] = [];
const kit = { at_ms: 0, disk_full: false };
let episodes: DropEpisodes;

beforeEach(() => {
  lines.length = 0;
  Object.assign(kit, { at_ms: 0, disk_full: false });
  episodes = new DropEpisodes({
    now: () => kit.at_ms,
    disk: {
      health: {
        get state() {
          return kit.disk_full ? 'full' : 'ok';
        },
        detail: '',
      },
    },
    log: { warn: (facts, sentence) => void lines.push([facts, sentence]) },
  });
});

function passes(ms: number): void {
  kit.at_ms += ms;
  episodes.tick();
}

test('an episode is logged when it begins, and once it is over with the messages by reason and lane, and its duration', () => {
  for (let second = 0; second < 100; second += 1) {
    episodes.dropped('feed', 'thinned', 90);
    if (second % 10 === 0) episodes.dropped('kit', 'evicted', 1);
    passes(1_000);
  }
  expect(episodes.current).toEqual([{ cause: 'limit', lanes: ['feed', 'kit'] }]);
  passes(quiet_ms);
  expect(lines).toEqual([
    [{ lane: 'feed', reason: 'thinned' }, texts.dropping.limit],
    [
      { messages: 9_010, thinned: 9_000, evicted: 10, lanes: { feed: 9_000, kit: 10 }, took_s: 99 },
      texts.dropped.limit,
    ],
  ]);
  expect(episodes.current).toEqual([]);
});

test('drops that come now and then are one episode, and a later one begins anew', () => {
  for (let times = 0; times < 5; times += 1) {
    episodes.dropped('feed', 'evicted', 500);
    passes(quiet_ms - 1);
  }
  expect(lines).toHaveLength(1);
  passes(quiet_ms);
  episodes.dropped('feed', 'evicted', 500);
  expect(lines.map(([, sentence]) => sentence)).toEqual([
    texts.dropping.limit,
    texts.dropped.limit,
    texts.dropping.limit,
  ]);
});

test.for([
  ['evicted', true, 'disk'],
  ['evicted', false, 'limit'],
  ['thinned', true, 'limit'],
  ['expired', false, 'age'],
  ['memory_full', false, 'memory'],
] as const)(
  'messages that are %s with a full disk %s belong to the cause %s',
  ([reason, disk_full, cause]) => {
    kit.disk_full = disk_full;
    episodes.dropped('feed', reason, 1);
    episodes.close();
    expect(lines.map(([, sentence]) => sentence)).toEqual([texts.dropping[cause], texts.dropped[cause]]);
  },
);

test.for(['superseded', 'too_large', 'unreadable', 'discarded'] as const)(
  'messages that are %s were not dropped for want of room',
  (reason) => {
    episodes.dropped('feed', reason, 1);
    expect([episodes.current, lines]).toEqual([[], []]);
  },
);
