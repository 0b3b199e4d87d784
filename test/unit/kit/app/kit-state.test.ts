import { describe, expect, it } from 'vitest';
import { kitState } from '../../../../src/kit/app/kit-state.ts';
import type { ReportParts } from '../../../../src/kit/app/status-report.ts';

const start_mono_ms = 20_000;
const set_ms = Date.UTC(2026, 10, 22, 12);

/** A kit that started before its clock was set, or after, and is asked ten seconds later. */
function startedAt(how: { readonly synced_at_start: boolean; readonly synced: boolean }): string {
  const none = (): readonly never[] => [];
  const parts = {
    version: '0',
    started: {
      time_ms: how.synced_at_start ? set_ms : 0,
      mono_ms: start_mono_ms,
      synced: how.synced_at_start,
    },
    clock: {
      boot_id: 'boot',
      stamp: () => ({
        time_ms: (how.synced ? set_ms : 0) + 10_003,
        mono_ms: start_mono_ms + 10_000,
        synced: how.synced,
      }),
    },
    config: { warnings: [] },
    hub: { drivers: none, assets: none },
    uplink: { problems: none },
    lowBattery: () => null,
    conditions: { sentences: none },
    outbox: {
      epoch: 1,
      depth: () => new Map(),
      oldest_ms: null,
      health: () => ({ state: 'ok', detail: '' }),
      ledger: () => ({ dropped: {} }),
      drop_episodes: { current: [] },
      dispatch: { withoutSubscribers: none, refusedKinds: none },
      salvage: undefined,
    },
  } as unknown as ReportParts;
  return kitState(parts, { online: true, reason: null }).started_at;
}

describe('kitState', () => {
  it('reports the start by the clock once that is set, if it was not set at the start', () => {
    expect(startedAt({ synced_at_start: false, synced: true })).toBe('2026-11-22T12:00:00.003Z');
  });

  it('reports the start by the untrusted clock until a better time is known', () => {
    expect(startedAt({ synced_at_start: false, synced: false })).toBe('1970-01-01T00:00:00.000Z');
  });

  it('never changes the start of a kit whose clock was set then', () => {
    expect(startedAt({ synced_at_start: true, synced: true })).toBe('2026-11-22T12:00:00.000Z');
  });
});
