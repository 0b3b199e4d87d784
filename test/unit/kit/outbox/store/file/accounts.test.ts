/** What the main thread is told of a transaction whose COMMIT failed, and that may be in the file all the same. */
import { describe, expect, it } from 'vitest';
import { Accounts } from '../../../../../../src/kit/outbox/store/file/transactions.ts';
import { no_depth } from '../../../../../../src/kit/outbox/store/changes.ts';
import { rowId } from '../../../../../../src/kit/outbox/row.ts';

const id = rowId({ epoch: 1, seq: 1 });
const row = { id, lane: 'alarm', channel: 'event/a/gps', time_ms: 0, mono_ms: null, body: '{}' } as const;
const alarms = { ...no_depth, alarm: { rows: 5, bytes: 500 } };

/** A commit that adds a row, removes two that were delivered, and fails at its end. */
function unsure({ isCommit }: { readonly isCommit: boolean }) {
  const accounts = new Accounts();
  accounts.opened(alarms, 0);
  const begun = accounts.begin();
  begun.changes.came('alarm', 100);
  begun.changes.left('alarm', 'delivered', { rows: 2, bytes: 200, lo: id, hi: id });
  const found: string[] = [];
  const commit = isCommit ? { rows: [row], found: () => found.push('found') } : undefined;
  accounts.failed({ ...begun, quarantined: 0, commit });
  return { accounts, number: begun.number, after: begun.changes.depth(), found };
}

describe('the accounts of a buffer file', () => {
  it('count a commit that is in the file once it is made again, and tell what it removed then', () => {
    const { accounts, number, after, found } = unsure({ isCommit: true });
    expect(accounts.isUnsure).toBe(true);
    accounts.opened(after, number);
    expect(found).toEqual(['found']);
    expect([accounts.depth, accounts.takeUntold()]).toEqual([alarms, []]);
    expect(accounts.takeFound()).toEqual([row]);
    expect(accounts.depth).toEqual(after);
    expect(accounts.takeUntold()).toMatchObject([{ lane: 'alarm', why: 'delivered', rows: 2 }]);
    expect([accounts.isUnsure, accounts.takeFound()]).toEqual([false, undefined]);
  });

  it('forget a commit that is not in the file', () => {
    const { accounts, number, found } = unsure({ isCommit: true });
    accounts.opened(alarms, number - 1);
    expect([accounts.isUnsure, accounts.takeFound(), accounts.takeUntold(), found]).toEqual([
      false,
      undefined,
      [],
      [],
    ]);
  });

  it('tell at once what another request has removed, since nobody makes it again', () => {
    const { accounts, number, after } = unsure({ isCommit: false });
    expect(accounts.isUnsure).toBe(false);
    accounts.opened(after, number);
    expect(accounts.depth).toEqual(after);
    expect(accounts.takeUntold()).toMatchObject([{ why: 'delivered', rows: 2 }]);
  });
});
