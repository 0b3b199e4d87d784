/** Reports of dropped messages: complete, and few. */
import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { dropReport } from '../../../../../src/contract/drops.ts';
import { channels } from '../../../../../src/contract/topics.ts';
import type { Draft } from '../../../../../src/kit/outbox/api.ts';
import { Committer } from '../../../../../src/kit/outbox/live/committer.ts';
import { DropReports } from '../../../../../src/kit/outbox/live/drops.ts';
import { Ledger } from '../../../../../src/kit/outbox/live/ledger.ts';
import { rowId } from '../../../../../src/kit/outbox/row.ts';
import { StoreLab } from '../../../../support/disk/store-lab.ts';

const hour_ms = 3_600_000;

let store: StoreLab;
let now_ms: number;
let is_connected: boolean;
let appended: Draft[];
let reports: DropReports;
let ledger: Ledger;
let committer: Committer;

beforeEach(() => {
  vi.useFakeTimers();
  store = new StoreLab();
  now_ms = 0;
  is_connected = false;
  appended = [];
  committer = new Committer({
    now: () => now_ms,
    commit: async (work) => store.store.commit(work),
    began: () => [],
    written: () => undefined,
    failed: () => undefined,
  });
  ledger = new Ledger(store.opened, committer, { dropped: () => undefined });
  reports = new DropReports({
    ledger,
    committer,
    append: (draft) => {
      appended.push(draft);
      return { epoch: 1, seq: appended.length };
    },
    isConnected: () => is_connected,
    now: () => now_ms,
  });
});
afterEach(async () => {
  committer.close();
  vi.useRealTimers();
  store[Symbol.dispose]();
  await rm(store.dir, { recursive: true, force: true });
});

const sent = (seq: number): void =>
  reports.sent({ id: rowId({ epoch: 1, seq }), channel: channels.drops } as Parameters<
    typeof reports.sent
  >[0]);

function drop(seq: number): void {
  ledger.accepted();
  ledger.droppedFromMemory('superseded', { lane: 'presence', id: rowId({ epoch: 1, seq }) });
}

describe('DropReports', () => {
  it('appends at most one report an hour without a link, none before the first hour, and the rest in one more after it', () => {
    const hours = 30 * 24;
    const by_hour = Array.from({ length: hours }, (_, hour) => {
      for (let n = 0; n < 6; n += 1) {
        drop(hour * 6 + n + 1);
        now_ms += hour_ms / 6;
        if (n < 5) reports.tick();
      }
      const early = appended.length;
      reports.tick();
      return { early, appended: appended.length };
    });
    expect(by_hour[0]).toEqual({ early: 0, appended: 1 });
    expect(by_hour.at(-1)).toEqual({ early: hours - 1, appended: hours });
    drop(hours * 6 + 1);
    is_connected = true;
    sent(hours);
    reports.tick();
    expect(appended).toHaveLength(hours + 1);
    const rows = appended.flatMap(({ data }) => dropReport.parse(data).drops.map((each) => each.rows));
    expect(rows.reduce((sum, each) => sum + each, 0)).toBe(ledger.report().dropped['superseded']);
  });

  it('appends no second report while one is under way', () => {
    is_connected = true;
    drop(1);
    reports.tick();
    drop(2);
    reports.tick();
    expect(appended).toHaveLength(1);
    sent(1);
    reports.tick();
    expect(appended).toHaveLength(2);
  });

  it('stops waiting for a report that never arrives', () => {
    is_connected = true;
    drop(1);
    reports.tick();
    drop(2);
    now_ms += 2 * hour_ms;
    reports.tick();
    expect(appended).toHaveLength(2);
  });
});
