import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { StorageUnavailable, StorageUnsure } from '../../../../../src/platform/errors.ts';
import { commit_answer_ms, Committer } from '../../../../../src/kit/outbox/live/committer.ts';
import type { Live } from '../../../../../src/kit/outbox/live/outgoing.ts';
import type { Done, LaneDepth, Work } from '../../../../../src/kit/outbox/protocol.ts';
import { live } from '../../../../support/disk/messages.ts';
import { taskEntry } from '../../../../support/disk/store-lab.ts';
import { own_stalls } from '../../../../../src/platform/stalls.ts';

const empty: LaneDepth = { rows: 0, bytes: 0 };
const done: Done = {
  depth: { task: empty, presence: empty, alarm: empty, kit: empty, feed: empty },
  removed: [],
  quarantined_rows: 0,
  health: { state: 'ok', detail: '' },
};

/** A disk that answers when it is told to. */
function scriptedDisk(now = () => Date.now()) {
  const commits: Work[] = [];
  let answer: { resolve: (done: Done) => void; reject: (error: Error) => void } | undefined;
  const written: Live[] = [];
  const failed: Live[] = [];
  const states: string[] = [];
  const events: string[] = [];
  const committer = new Committer({
    now,
    commit: async (work) => {
      commits.push(work);
      return new Promise<Done>((resolve, reject) => {
        answer = { resolve, reject };
      });
    },
    began: () => [],
    written: (lives, { health }) => {
      written.push(...lives);
      states.push(health.state);
    },
    failed: (lives, _, event) => {
      failed.push(...lives);
      events.push(event);
    },
  });
  return {
    committer,
    commits,
    written,
    failed,
    states,
    events,
    async succeed() {
      answer?.resolve(done);
      await vi.advanceTimersByTimeAsync(0);
    },
    /** With an error for what it may have carried out. */
    async leaveUnsure() {
      answer?.reject(new StorageUnsure('disk I/O error'));
      await vi.advanceTimersByTimeAsync(0);
    },
    async fail() {
      answer?.reject(new StorageUnavailable('disk full'));
      await vi.advanceTimersByTimeAsync(0);
    },
  };
}

const due = (): Live => live('alarm', { state: { disk: 'due', place: 'nowhere', is_held: false } });

const entry = taskEntry({ task_id: 't', state: 'running' });

describe('Committer', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
  });

  it('puts what comes within the time of the first row into one transaction', async () => {
    const disk = scriptedDisk();
    disk.committer.write(due(), 20);
    await vi.advanceTimersByTimeAsync(15);
    disk.committer.write(due(), 20);
    expect(disk.commits).toHaveLength(0);
    await vi.advanceTimersByTimeAsync(5);
    expect(disk.commits.map(({ rows }) => rows.length)).toEqual([2]);
    await disk.succeed();
    expect(disk.written).toHaveLength(2);
  });

  it('runs one transaction at a time, and the next takes all that came meanwhile', async () => {
    const disk = scriptedDisk();
    disk.committer.write(due(), 20);
    await vi.advanceTimersByTimeAsync(20);
    for (let n = 0; n < 50; n += 1) disk.committer.write(due(), 20);
    await vi.advanceTimersByTimeAsync(500);
    expect(disk.commits).toHaveLength(1);
    await disk.succeed();
    await vi.advanceTimersByTimeAsync(20);
    expect(disk.commits.map(({ rows }) => rows.length)).toEqual([1, 50]);
    await disk.succeed();
  });

  it('starts early when many rows wait, and splits what is too much for one transaction', async () => {
    const disk = scriptedDisk();
    for (let n = 0; n < 5_000; n += 1) disk.committer.write(due(), 250);
    await vi.advanceTimersByTimeAsync(0);
    await disk.succeed();
    await vi.advanceTimersByTimeAsync(0);
    await disk.succeed();
    expect(disk.commits.map(({ rows }) => rows.length)).toEqual([4_096, 904]);
    expect(disk.written).toHaveLength(5_000);
  });

  it('makes a commit again as it is, before anything else, when the disk may have carried it out', async () => {
    const disk = scriptedDisk();
    const [first, second] = [due(), due()];
    disk.committer.write(first, 20);
    const settled = disk.committer.settled(0).catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(20);
    disk.committer.write(second, 20);
    await disk.leaveUnsure();
    expect(await settled).toBeInstanceOf(StorageUnsure);
    // What it writes may be on disk: it is not refused, and nothing that was added since is beside it.
    expect(disk.events).toEqual(['disk_away']);
    expect(disk.committer.rows_under_way).toEqual([first]);
    const later = disk.committer.settled(0);
    await vi.advanceTimersByTimeAsync(1_000);
    expect(disk.commits.map(({ rows, again }) => [rows.length, again])).toEqual([
      [1, false],
      [1, true],
    ]);
    await disk.succeed();
    expect(disk.written).toEqual([first]);
    await vi.advanceTimersByTimeAsync(20);
    expect(disk.commits.map(({ rows }) => rows[0]?.id)).toEqual([first.row.id, first.row.id, second.row.id]);
    await disk.succeed();
    await expect(later).resolves.toBeUndefined();
  });

  it('tries again with all that waits when a commit that may have been carried out is then refused', async () => {
    const disk = scriptedDisk();
    const [first, second] = [due(), due()];
    disk.committer.write(first, 20);
    await vi.advanceTimersByTimeAsync(20);
    await disk.leaveUnsure();
    disk.committer.write(second, 20);
    await vi.advanceTimersByTimeAsync(1_500);
    await disk.fail();
    expect(disk.events).toEqual(['disk_away', 'refused']);
    await vi.advanceTimersByTimeAsync(3_000);
    expect(disk.commits.map(({ rows, again }) => [rows.length, again])).toEqual([
      [1, false],
      [1, true],
      [2, false],
    ]);
    await disk.succeed();
    expect(disk.written).toEqual([first, second]);
  });

  it('resolves a journal entry only when it is on disk, together with the rows before it', async () => {
    const disk = scriptedDisk();
    const report = due();
    disk.committer.write(report, 20);
    let is_durable = false;
    const journaled = disk.committer.journal(entry).then(() => (is_durable = true));
    await vi.advanceTimersByTimeAsync(0);
    expect(disk.commits[0]?.journal).toEqual([entry]);
    expect(disk.commits[0]?.rows).toEqual([report.row]);
    expect(is_durable).toBe(false);
    await disk.succeed();
    await journaled;
    expect(is_durable).toBe(true);
  });

  it('keeps all rows when a write fails, rejects waiting callers and retries with growing pauses', async () => {
    const disk = scriptedDisk();
    const first = due();
    disk.committer.write(first, 20);
    const refusal = disk.committer.journal(entry).catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(0);
    await disk.fail();
    expect(await refusal).toBeInstanceOf(StorageUnavailable);
    expect(disk.failed).toEqual([first]);
    disk.committer.write(due(), 20);
    await vi.advanceTimersByTimeAsync(400);
    expect(disk.commits).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(700);
    expect(disk.commits[1]?.rows).toHaveLength(2);
    expect(disk.commits[1]?.journal).toEqual([entry]);
    await disk.succeed();
    expect(disk.written).toHaveLength(2);
  });

  it('does not write a row that the broker had before its transaction began', async () => {
    const disk = scriptedDisk();
    const [acked, other] = [due(), due()];
    disk.committer.write(acked, 250);
    disk.committer.write(other, 250);
    acked.state = { disk: 'no', place: 'broker', is_held: false };
    await vi.advanceTimersByTimeAsync(250);
    expect(disk.commits[0]?.rows).toEqual([other.row]);
    await disk.succeed();
    expect(disk.written).toEqual([other]);
  });

  it('counts a disk that answers late as failing until a commit is answered in time', async () => {
    const disk = scriptedDisk();
    disk.committer.write(due(), 20);
    await vi.advanceTimersByTimeAsync(12_000);
    await disk.succeed();
    expect(disk.states.at(-1)).toBe('failing');
    expect(disk.written).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(0);
    expect(disk.commits.map(({ rows }) => rows.length)).toEqual([1, 0]);
    await disk.succeed();
    expect(disk.states.at(-1)).toBe('ok');
  });

  it('does not take a stall of this process for a slow disk', async () => {
    vi.useRealTimers();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    const end = new AbortController();
    own_stalls.watch(end.signal);
    let more_ms = 0;
    const disk = scriptedDisk(() => performance.now() + more_ms);
    disk.committer.write(due(), 0);
    await vi.advanceTimersByTimeAsync(0);
    expect(disk.commits).toHaveLength(1);
    const until_ms = performance.now() + 600;
    while (performance.now() < until_ms);
    await vi.advanceTimersByTimeAsync(commit_answer_ms);
    expect(disk.failed).toEqual([]);
    more_ms = commit_answer_ms;
    await vi.advanceTimersByTimeAsync(commit_answer_ms);
    expect(disk.failed).toHaveLength(1);
    await disk.succeed();
    await vi.advanceTimersByTimeAsync(0);
    await disk.succeed();
    end.abort();
  });

  it('rejects waiting callers during an unanswered commit and writes later rows after it', async () => {
    const disk = scriptedDisk();
    disk.committer.write(due(), 0);
    await vi.advanceTimersByTimeAsync(0);
    disk.committer.write(due(), 0);
    const refusal = disk.committer.journal(entry).catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await refusal).toBeInstanceOf(StorageUnavailable);
    await disk.succeed();
    await vi.advanceTimersByTimeAsync(0);
    expect(disk.commits[1]).toMatchObject({ rows: [{}], journal: [entry] });
    await disk.succeed();
  });

  it('rejects callers that wait for a later commit when a write fails', async () => {
    const disk = scriptedDisk();
    for (let n = 0; n < 5_000; n += 1) disk.committer.write(due(), 0);
    const refusal = disk.committer.settled(0).catch((error: unknown) => error);
    await vi.advanceTimersByTimeAsync(0);
    expect(disk.commits[0]?.rows).toHaveLength(4_096);
    await disk.fail();
    expect(await refusal).toBeInstanceOf(StorageUnavailable);
    disk.committer.close();
  });

  it('counts the rows of batches whose removal waits, so that a disk that refuses bounds their memory', async () => {
    const disk = scriptedDisk();
    const { committer } = disk;
    for (let token = 1; token <= 400; token += 1) {
      const outcome = token % 2 === 0 ? 'delivered' : 'unconfirmed';
      committer.settle({ outcome, token, rows: 1_000 }, 0);
    }
    expect(committer.refs).toBe(20_000);
    await vi.advanceTimersByTimeAsync(0);
    const [work] = disk.commits;
    expect([work?.delivered_batches.length, work?.unconfirmed_batches.length]).toEqual([200, 200]);
    expect(work?.delivered_batches.slice(0, 2)).toEqual([2, 4]);
    await disk.succeed();
    expect(committer.refs).toBe(0);
  });

  it('resolves at once when there is nothing to write', async () => {
    const disk = scriptedDisk();
    await disk.committer.settled(0);
    expect(disk.commits).toHaveLength(0);
  });
});
