import { describe, expect, it } from 'vitest';
import { Presence } from '../../../../src/kit/uplink/presence.ts';
import { test_kit } from '../../../support/gps.ts';

const whole = { compact: false, retain: true };

function lab() {
  const world = { now_ms: 0, epoch: 3, name: 'Kit 7', degraded: [] as string[], rows: 0, synced: true };
  const presence = new Presence({
    kit_id: test_kit,
    epoch: () => world.epoch,
    clock: { stamp: () => ({ time_ms: 1_795_255_200_000, mono_ms: 0, synced: world.synced }) },
    state: (how) => ({ ...how, name: world.name, degraded: world.degraded, outbox: { rows: world.rows } }),
    now: () => world.now_ms,
  });
  const read = (message: { readonly payload: string | Uint8Array } | undefined): Record<string, unknown> =>
    message === undefined ? {} : (JSON.parse(String(message.payload)) as Record<string, unknown>);
  return { world, presence, read };
}

describe('the presence of the kit', () => {
  it('numbers the states of a connection below its will, and all of them below the next birth', () => {
    const { world, presence, read } = lab();
    const will = read(presence.will(whole));
    const birth = read(presence.birth(10_000));
    world.now_ms = 10_000;
    world.degraded = ['the disk is full'];
    const again = read(presence.due());
    presence.will(whole);
    const next = read(presence.birth(10_000));
    expect([birth, again, will, next].map(({ seq }) => seq)).toEqual([1, 2, 10_000_000, 10_000_001]);
    expect(new Set([birth, again, will, next].map(({ epoch }) => epoch))).toEqual(new Set([3]));
    expect(again['data']).toMatchObject({ online: true, degraded: ['the disk is full'] });
  });

  it('is published again when a fault comes or goes, at most every ten seconds', () => {
    const { world, presence } = lab();
    presence.will(whole);
    presence.birth(10_000);
    world.degraded = ['a'];
    world.now_ms = 9_999;
    expect(presence.due()).toBeUndefined();
    world.now_ms = 10_000;
    expect(presence.due()).toBeDefined();
    expect(presence.due()).toBeUndefined();
    world.now_ms = 20_000;
    expect(presence.due()).toBeUndefined();
    world.degraded = [];
    expect(presence.due()).toBeDefined();
  });

  it('is published again when the buffer has ten times as much, at most every minute', () => {
    const { world, presence } = lab();
    presence.will(whole);
    presence.birth(10_000);
    world.rows = 5;
    world.now_ms = 59_999;
    expect(presence.due()).toBeUndefined();
    world.now_ms = 60_000;
    expect(presence.due()).toBeDefined();
    world.rows = 9;
    world.now_ms = 200_000;
    expect(presence.due()).toBeUndefined();
    world.rows = 0;
    expect(presence.due()).toBeDefined();
  });

  it('is published again once on request of the cloud', () => {
    const { world, presence } = lab();
    presence.will(whole);
    presence.birth(10_000);
    world.now_ms = 60_000;
    presence.ask();
    expect(presence.due()).toBeDefined();
    world.now_ms = 120_000;
    expect(presence.due()).toBeUndefined();
  });

  it('is not published again after the farewell, which would leave the kit online at the broker', () => {
    const { world, presence } = lab();
    presence.will(whole);
    presence.birth(10_000);
    presence.farewell('stopped');
    presence.ask();
    world.degraded = ['a driver does not stop'];
    world.now_ms = 60_000;
    expect(presence.due()).toBeUndefined();
    presence.will(whole);
    presence.birth(10_000);
    world.degraded = [];
    world.now_ms = 120_000;
    expect(presence.due()).toBeDefined();
  });

  it('omits the faults where the broker accepts only small packets', () => {
    const { world, presence, read } = lab();
    world.degraded = ['a'.repeat(500), 'b'];
    const left_out = { degraded: ["2 faults; the broker's packet limit is too small to list them"] };
    expect(read(presence.will({ compact: true, retain: false }))['data']).toMatchObject(left_out);
    expect(read(presence.birth(400))['data']).toMatchObject(left_out);
    expect(read(presence.birth(10_000))['data']).toMatchObject({ degraded: world.degraded });
  });

  it('reports that its clock is not set', () => {
    const { world, presence, read } = lab();
    world.synced = false;
    expect(read(presence.will(whole))['time_quality']).toBe('unsynced');
    expect(read(presence.birth(10_000))['time_quality']).toBe('unsynced');
    world.synced = true;
    expect(read(presence.farewell('stopped'))).not.toHaveProperty('time_quality');
  });

  it('is outdated once the outbox begins an epoch, until the next connection', () => {
    const { world, presence } = lab();
    presence.will(whole);
    expect(presence.isOutdated).toBe(false);
    world.epoch = 4;
    expect(presence.isOutdated).toBe(true);
    presence.will(whole);
    expect(presence.isOutdated).toBe(false);
  });
});
