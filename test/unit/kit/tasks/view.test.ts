/** Tasks as the tools of the gateway show them: from the journal and from memory, the newest first. */
import { describe, expect, it } from 'vitest';
import type { JournalEntry } from '../../../../src/kit/outbox/protocol.ts';
import { newestViews, openView, viewOf } from '../../../../src/kit/tasks/runner.ts';

const origin = { via: 'cloud', user: 'ada', uid: null, requested_by: null };
const asset_id = 'b7e23ec2-9b1a-4d7e-8a55-0c6a1d2f3e44';
const received_ms = Date.UTC(2027, 5, 1, 12);

function idOf(number: number): string {
  return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;
}

function entryOf(number: number, changes: Partial<JournalEntry> = {}): JournalEntry {
  const task_id = idOf(number);
  const dispatch = {
    task_id,
    asset_id,
    command_name: 'goto_waypoint',
    payload: { lat: 47.4 },
    created_at: '2027-06-01T11:59:58.000Z',
    origin,
  };
  return {
    task_id,
    state: 'completed',
    dispatch: JSON.stringify(dispatch),
    result: JSON.stringify({ reached: true }),
    received_ms,
    updated_ms: received_ms + 5_000,
    deadline_ms: null,
    ...changes,
  };
}

describe('The view of a task', () => {
  it('has what was dispatched, who asked, and what came of it', () => {
    expect(viewOf(entryOf(1))).toEqual({
      id: idOf(1),
      asset_id,
      command_name: 'goto_waypoint',
      payload: { lat: 47.4 },
      status: 'completed',
      result: { reached: true },
      created_at: '2027-06-01T11:59:58.000Z',
      updated_at: '2027-06-01T12:00:05.000Z',
      note: null,
      origin,
    });
  });

  it.each(['not JSON', '{"unreadable":"x"}', '[]', '{}'])(
    'shows a task whose dispatch cannot be read (%s) with the time of its reception',
    (dispatch) => {
      expect(
        viewOf(entryOf(1, { dispatch, state: 'failed', result: '{"error":"unreadable"}' })),
      ).toMatchObject({
        id: idOf(1),
        asset_id: '',
        command_name: '',
        payload: {},
        created_at: '2027-06-01T12:00:00.000Z',
        result: { error: 'unreadable' },
        origin: null,
      });
    },
  );

  it('has an empty result where the journal holds no object', () => {
    for (const result of ['', '[1]', 'null', '{']) expect(viewOf(entryOf(1, { result })).result).toEqual({});
  });

  it('shows a task as running, with a note, while its end is only in memory', () => {
    const entry = entryOf(1);
    expect(openView({ entry, note: 'the disk refuses it' })).toMatchObject({
      status: 'running',
      result: {},
      note: 'the disk refuses it',
    });
  });

  it('shows a task that has not ended as it is, without a note', () => {
    const entry = entryOf(1, { state: 'pending', result: '{}' });
    expect(openView({ entry, note: undefined })).toMatchObject({ status: 'pending', note: null });
  });
});

describe('The newest tasks', () => {
  const open = (number: number) => ({
    entry: entryOf(number, { state: 'running', result: '{}' }),
    note: undefined,
  });

  it('are those of memory that the disk does not have yet, the latest first, then those on disk', () => {
    const views = newestViews([open(3), open(4)], [entryOf(2), entryOf(1)], 10);
    expect(views.map(({ id }) => id)).toEqual([4, 3, 2, 1].map(idOf));
  });

  it('are shown once, as memory knows them, where both have them', () => {
    const views = newestViews([open(2)], [entryOf(2, { state: 'pending' }), entryOf(1)], 10);
    expect(views.map(({ id, status }) => [id, status])).toEqual([
      [idOf(2), 'running'],
      [idOf(1), 'completed'],
    ]);
  });

  it('are not more than asked for', () => {
    expect(newestViews([open(5), open(6)], [entryOf(4), entryOf(3)], 3)).toHaveLength(3);
    expect(newestViews([], [], 3)).toEqual([]);
  });
});
