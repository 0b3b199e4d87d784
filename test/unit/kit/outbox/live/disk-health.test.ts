import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { DiskState, lookAtFile } from '../../../../../src/kit/outbox/live/disk-health.ts';
import { type Done, nothing_left, type Opened } from '../../../../../src/kit/outbox/protocol.ts';
import { no_depth } from '../../../../../src/kit/outbox/store/changes.ts';
import { StorageUnavailable } from '../../../../../src/platform/errors.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined };
const ok = { state: 'ok', detail: '' } as const;
const opened: Opened = {
  drops: [],
  open_tasks: [],
  announced: [],
  cloud_acks: false,
  left: nothing_left,
  ended_tasks: { completed: 0, failed: 0 },
  epoch: 1,
  epoch_wait_ms: 0,
  machine_changed: false,
  depth: no_depth,
  quarantined_rows: 0,
  salvage: undefined,
  health: ok,
};
const done: Done = { depth: no_depth, removed: [], quarantined_rows: 0, health: ok };

it('a look that is answered after the disk refused a commit is counted, and does not make the disk well', async () => {
  const disk = new DiskState(opened, quiet);
  const answer = Promise.withResolvers<Done>();
  const seen: Done[] = [];
  const stop = new AbortController();
  const failed = (error: unknown): void => expect.fail(String(error));
  const client = { look: async () => answer.promise, inspect: async () => expect.fail('not asked for') };
  lookAtFile({ client, disk, failed, seen: (each) => seen.push(each) }, stop.signal);
  await vi.advanceTimersByTimeAsync(1_000);
  disk.refused(new StorageUnavailable('disk I/O error'));
  answer.resolve(done);
  await vi.advanceTimersByTimeAsync(0);
  stop.abort();
  expect(seen).toEqual([done]);
  disk.answered(done, 'look');
  expect(disk.isFailing).toBe(true);
  disk.answered(done, 'commit');
  expect(disk.isFailing).toBe(false);
});
