/** Alarms as the store opens and closes them, on both databases. */
import { expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import {
  type AlarmResource,
  alarmStates,
  lasting_states,
} from '../../../../src/cloud/api/alarm-resources.ts';
import { silent_after_ms, alarmResource } from '../../../../src/cloud/api/views.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { calm, idOf, received, start_ms } from '../story.ts';

const minute_ms = 60_000;
const state = (more: JsonObject = {}): JsonObject => ({ ...calm, ...more });
const id = idOf;

interface Options {
  readonly at_ms?: number;
  /** By the clock of the kit; left out: as it arrives. */
  readonly said_ms?: number;
  readonly historical?: boolean;
}

/** A kit whose messages arrive when they are sent, unless told otherwise. */
function kitOn(store: Store) {
  let seq = 0;
  let clock_ms = start_ms;
  const send = async (
    channel: string,
    data: JsonObject,
    { at_ms = clock_ms, said_ms = at_ms, historical = false }: Options = {},
  ) => {
    clock_ms = at_ms;
    seq += 1;
    const reception = received({ channel, seq, data, time_ms: said_ms });
    return store.commit([{ ...reception, historical }], at_ms);
  };
  return {
    send,
    motion: async (detected: boolean, options: Options = {}) =>
      send(channels.event(asset_id, 'motion'), { detected }, options),
    links: async (status: string, options: Options = {}) =>
      send(channels.telemetry, { wans: [{ name: 'eth3', status }] }, options),
    asset: async (n: number, parent: number | null, status: string, options: Options = {}) =>
      send(
        channels.asset(id(n)),
        { ...samples['announcement'], id: id(n), parent_id: parent === null ? null : id(parent), status },
        options,
      ),
    status: async (n: number, status: string, options: Options = {}) =>
      send(channels.event(id(n), 'asset_status'), { status, reason: null }, options),
    state: async (more: JsonObject, options: Options = {}) => send(channels.state, state(more), options),
    look: async (at_ms: number) => store.lookAtAlarms(at_ms),
    /** All alarms, the newest last, in short. */
    async alarms(now_ms = clock_ms) {
      const found = await store.alarms({ kits: [kit_id], states: alarmStates, limit: 100, now_ms });
      return found.map((alarm) => alarmResource(alarm, now_ms)).toReversed();
    },
  };
}

const radio = 1;
const time_of = (minute: number): string => new Date(start_ms + minute * minute_ms).toISOString();

/**
 * A radio and 45 assets behind it, all lost in one minute. Elsewhere the fault is reported as many where a child is polled first
 * (librenms#8353, Cacti#7878), and an alarm that closes loses its details (thingsboard#16150).
 */
async function lose(kit: ReturnType<typeof kitOn>, minute: number): Promise<void> {
  for (let n = 1; n <= 46; n += 1) await kit.asset(n, n === radio ? null : radio, 'online');
  for (let n = 1; n <= 46; n += 1) await kit.status(n, 'offline', { at_ms: start_ms + minute * minute_ms });
}

function awayOf(alarm: AlarmResource | undefined): readonly string[] | undefined {
  return alarm?.assets.filter((each) => !alarm.back?.includes(each));
}

async function open_alarms(kit: ReturnType<typeof kitOn>) {
  return (await kit.alarms()).filter(({ state: its }) => its === 'open');
}

onEachDatabase('Alarms', (open) => {
  const start = async () => {
    const store = sqlStore(await open());
    const kit = kitOn(store);
    await kit.state({ online: true, reason: null });
    return { store, kit };
  };

  it('are open while something is so, and close by themselves', async () => {
    const { kit } = await start();
    await kit.links('online');
    expect(await kit.alarms()).toEqual([]);
    await kit.links('offline', { at_ms: start_ms + 1_000 });
    await kit.links('offline', { at_ms: start_ms + 2_000 });
    expect(await kit.alarms()).toMatchObject([
      {
        what: 'link',
        subject: 'eth3',
        severity: 'warning',
        state: 'open',
        count: 1,
        since: '2026-11-21T10:00:01.000Z',
      },
    ]);
    await kit.links('online', { at_ms: start_ms + 9_000 });
    expect(await kit.alarms()).toMatchObject([{ state: 'closed', closed_at: '2026-11-21T10:00:09.000Z' }]);
  });

  it('count what comes back within ten minutes, and are new after that', async () => {
    const { kit } = await start();
    for (const minute of [0, 2, 4, 16]) {
      await kit.motion(true, { at_ms: start_ms + minute * minute_ms });
      await kit.motion(true, { at_ms: start_ms + minute * minute_ms + 5_000 });
      await kit.motion(false, { at_ms: start_ms + minute * minute_ms + 10_000 });
    }
    expect((await kit.alarms()).map(({ count, assets, what }) => [what, count, assets])).toEqual([
      ['motion', 3, [asset_id]],
      ['motion', 1, [asset_id]],
    ]);
  });

  it('are one for all assets that a lost radio takes with it', async () => {
    const { kit } = await start();
    await kit.asset(radio, null, 'online');
    for (let n = 2; n <= 46; n += 1) await kit.asset(n, n % 2 === 0 ? radio : n - 1, 'online');
    await kit.asset(50, null, 'online');
    // The drones are missed before the radio is, some of them later than a minute.
    for (let n = 2; n <= 46; n += 1)
      await kit.status(n, 'offline', { at_ms: start_ms + (n > 40 ? 5 : 1) * minute_ms });
    await kit.status(radio, 'offline', { at_ms: start_ms + 5 * minute_ms + 1_000 });
    await kit.status(50, 'offline', { at_ms: start_ms + 9 * minute_ms });
    const alarms = await kit.alarms();
    expect(alarms.map(({ assets }) => assets.length).sort((a, b) => a - b)).toEqual([1, 46]);
    for (let n = 1; n <= 46; n += 1) await kit.status(n, 'online', { at_ms: start_ms + 10 * minute_ms });
    expect((await kit.alarms()).map(({ state: its }) => its).sort()).toEqual(['closed', 'open']);
  });

  it('are one for a lost radio, however far apart the assets behind it are missed', async () => {
    const { kit } = await start();
    await kit.asset(radio, null, 'online');
    for (let n = 2; n <= 46; n += 1) await kit.asset(n, radio, 'online');
    // Each device has a time-out of its own.
    for (let n = 2; n <= 5; n += 1) await kit.status(n, 'offline', { at_ms: start_ms + n * 2 * minute_ms });
    expect(await open_alarms(kit)).toHaveLength(4);
    await kit.status(radio, 'offline', { at_ms: start_ms + 11 * minute_ms });
    for (let n = 6; n <= 46; n += 1) await kit.status(n, 'offline', { at_ms: start_ms + n * 2 * minute_ms });
    const [alarm, ...others] = await open_alarms(kit);
    expect(others).toEqual([]);
    expect(alarm).toMatchObject({ what: 'asset', since: time_of(4), count: 1 });
    expect(alarm?.assets[0]).toBe(id(radio));
    expect(alarm?.assets).toHaveLength(46);
  });

  it('of a lost radio are not hidden by one of an asset behind it that is away for long', async () => {
    const { store, kit } = await start();
    await kit.asset(radio, null, 'online');
    for (let n = 2; n <= 46; n += 1) await kit.asset(n, radio, 'online');
    await kit.status(7, 'offline', { at_ms: start_ms + minute_ms });
    const [known] = await open_alarms(kit);
    const edit = { acknowledged: { by: 'ops', at_ms: start_ms + 2 * minute_ms } };
    await store.changeAlarm(kit_id, known?.id ?? '', { edit, revision: undefined });
    for (let n = 1; n <= 46; n += 1) await kit.status(n, 'offline', { at_ms: start_ms + 600 * minute_ms });
    expect((await kit.alarms()).map(({ state: its, assets }) => [its, assets.length])).toEqual([
      ['acknowledged', 1],
      ['open', 45],
    ]);
    // All but one come back, and are lost again.
    for (let n = 1; n <= 45; n += 1) await kit.status(n, 'online', { at_ms: start_ms + 700 * minute_ms });
    const [left] = await open_alarms(kit);
    expect(awayOf(left)).toEqual([id(46)]);
    await store.changeAlarm(kit_id, left?.id ?? '', { edit, revision: undefined });
    await kit.status(radio, 'offline', { at_ms: start_ms + 800 * minute_ms });
    const [again, ...others] = await open_alarms(kit);
    expect([again?.count, awayOf(again), others]).toEqual([2, [id(radio), id(46)], []]);
  });

  it('of a lost radio name those that are back, and close with the last one', async () => {
    const { kit } = await start();
    await lose(kit, 1);
    for (let n = 1; n <= 23; n += 1) await kit.status(n, 'online', { at_ms: start_ms + 2 * minute_ms });
    const [half] = await open_alarms(kit);
    expect([half?.assets.length, half?.assets[0]]).toEqual([46, id(radio)]);
    expect(half?.back).toEqual(Array.from({ length: 23 }, (_, n) => id(n + 1)));
    // One of them is lost on its own.
    await kit.status(5, 'offline', { at_ms: start_ms + 20 * minute_ms });
    await kit.status(5, 'online', { at_ms: start_ms + 21 * minute_ms });
    for (let n = 24; n <= 46; n += 1) await kit.status(n, 'online', { at_ms: start_ms + 23 * minute_ms });
    const [closed, single] = await kit.alarms();
    expect(closed).toMatchObject({ state: 'closed', closed_at: time_of(23), count: 1 });
    expect(closed?.assets).toEqual(half?.assets);
    expect(closed).not.toHaveProperty('back');
    expect(single).toMatchObject({ state: 'closed', since: time_of(20), assets: [id(5)] });
  });

  it('of a radio that is lost again within ten minutes are the same, whoever is missed first', async () => {
    const { kit } = await start();
    await lose(kit, 1);
    for (let n = 1; n <= 46; n += 1) await kit.status(n, 'online', { at_ms: start_ms + 2 * minute_ms });
    for (let n = 46; n >= 1; n -= 1) await kit.status(n, 'offline', { at_ms: start_ms + 4 * minute_ms });
    const alarms = await kit.alarms();
    expect(alarms).toMatchObject([{ state: 'open', count: 2, since: time_of(1) }]);
    expect(alarms[0]?.assets[0]).toBe(id(radio));
    expect(alarms[0]?.assets).toHaveLength(46);
  });

  it('are one for each asset again once the radio is back', async () => {
    const { kit } = await start();
    await lose(kit, 1);
    for (let n = 1; n <= 46; n += 1) await kit.status(n, 'online', { at_ms: start_ms + 2 * minute_ms });
    await kit.status(7, 'offline', { at_ms: start_ms + 20 * minute_ms });
    await kit.status(9, 'offline', { at_ms: start_ms + 30 * minute_ms });
    const alarms = await open_alarms(kit);
    expect(alarms.map(({ assets }) => assets)).toEqual([[id(7)], [id(9)]]);
    await kit.status(7, 'online', { at_ms: start_ms + 31 * minute_ms });
    expect((await open_alarms(kit)).map(({ assets }) => assets)).toEqual([[id(9)]]);
  });

  it('follow the presence of the kit, and leave the others alone while it is away', async () => {
    const { kit } = await start();
    await kit.links('offline', { at_ms: start_ms + 1_000 });
    await kit.asset(1, null, 'offline', { at_ms: start_ms + 2_000 });
    const lost = { online: false, reason: 'connection lost' };
    await kit.send(channels.state, state(lost), { at_ms: start_ms + minute_ms });
    expect((await kit.alarms()).map((each) => [each.what, each.state])).toEqual([
      ['link', 'open'],
      ['asset', 'open'],
      ['offline', 'open'],
    ]);
    await kit.state({ online: true, reason: null }, { at_ms: start_ms + 30 * minute_ms });
    expect((await kit.alarms()).map((each) => [each.what, each.state, each.severity])).toEqual([
      ['link', 'open', 'warning'],
      ['asset', 'open', 'warning'],
      ['offline', 'closed', 'critical'],
    ]);
  });

  it('open for a silent kit, and end when it sends again', async () => {
    const { kit } = await start();
    await kit.look(start_ms + silent_after_ms - 1_000);
    expect(await kit.alarms()).toEqual([]);
    await kit.look(start_ms + silent_after_ms);
    expect(await kit.alarms()).toMatchObject([{ what: 'offline', state: 'open' }]);
    await kit.links('online', { at_ms: start_ms + silent_after_ms + 1_000 });
    expect(await kit.alarms()).toMatchObject([{ what: 'offline', state: 'closed' }]);
  });

  it.each([
    ['from the buffer', { historical: true }],
    ['of an hour ago', {}],
  ])('raise none for late data %s', async (_, how) => {
    const { kit } = await start();
    const at_ms = start_ms + 60 * minute_ms;
    const said_ms = start_ms + minute_ms;
    await kit.motion(true, { at_ms, said_ms, ...how });
    await kit.motion(false, { at_ms, said_ms: said_ms + 1_000, ...how });
    await kit.asset(1, null, 'online', { at_ms, said_ms, ...how });
    await kit.status(1, 'offline', { at_ms, said_ms: said_ms + 1_000, ...how });
    await kit.status(1, 'online', { at_ms: at_ms + 1_000, said_ms: said_ms + 2_000, ...how });
    await kit.links('offline', { at_ms, said_ms, ...how });
    await kit.links('online', { at_ms: at_ms + 1_000, said_ms: said_ms + 1_000, ...how });
    await kit.look(at_ms + 2 * minute_ms);
    expect(await kit.alarms()).toEqual([]);
    // What is so since then is an alarm once nothing late comes any more.
    await kit.status(1, 'offline', { at_ms: at_ms + 3 * minute_ms, said_ms: said_ms + 3_000, ...how });
    expect(await kit.alarms()).toEqual([]);
    await kit.look(at_ms + 4 * minute_ms + 1_000);
    expect(await kit.alarms()).toMatchObject([{ what: 'asset', since: '2026-11-21T10:01:03.000Z' }]);
  });

  it('of several things of one feed do not overtake each other, as with two replicas', async () => {
    const { store } = await start();
    const relay = async (seq: number, name: string, detected: boolean): Promise<unknown> =>
      store.commit(
        [
          received({
            channel: channels.event(asset_id, 'relay_fault'),
            seq: 100 + seq,
            data: { name, detected },
          }),
        ],
        start_ms + 1_000,
      );
    const open_of = async (): Promise<readonly string[]> => {
      const query = { kits: [kit_id], states: lasting_states, limit: 9, now_ms: start_ms + 1_000 };
      return (await store.alarms(query)).map(({ subject }) => subject ?? '').sort();
    };
    const [begins, ends] = [true, false];
    // Another thing has the newest message between the end of a thing and its beginning, or the other way round.
    for (const [relays, are_open] of [
      [
        [
          [2, 'second', begins],
          [1, 'first', begins],
        ],
        ['first', 'second'],
      ],
      [
        [
          [4, 'second', ends],
          [3, 'first', ends],
        ],
        [],
      ],
      [
        [
          [6, 'first', ends],
          [7, 'second', begins],
          [5, 'first', begins],
        ],
        ['second'],
      ],
      [
        [
          [9, 'first', begins],
          [10, 'second', ends],
          [8, 'first', ends],
        ],
        ['first'],
      ],
      [
        [
          [14, 'first', ends],
          [15, 'second', begins],
          [13, 'first', begins],
          [12, 'first', ends],
        ],
        ['second'],
      ],
    ] as const) {
      for (const [seq, name, detected] of relays) await relay(seq, name, detected);
      expect(await open_of()).toEqual(are_open);
    }
  });

  it('are raised for an event that is short of time, and not closed by one that was overtaken', async () => {
    const { store, kit } = await start();
    const motion = (seq: number, detected: boolean) =>
      received({ channel: channels.event(asset_id, 'motion'), seq: 100 + seq, data: { detected } });
    const at_ms = start_ms + 1_000;
    await store.commit([motion(1, true), motion(2, false)], at_ms);
    expect(await kit.alarms()).toMatchObject([{ count: 1, state: 'closed' }]);
    await store.commit([motion(4, false)], at_ms);
    await store.commit([motion(3, true)], at_ms);
    expect(await kit.alarms()).toMatchObject([{ count: 2, state: 'closed' }]);
    await store.commit([motion(6, true)], at_ms);
    await store.commit([motion(5, false)], at_ms);
    await store.commit([motion(6, true)], at_ms);
    expect(await kit.alarms()).toMatchObject([{ count: 3, state: 'open' }]);
  });

  it('stay acknowledged when they come back, unless they are graver', async () => {
    const { store, kit } = await start();
    const battery = async (value: number, at_ms: number) =>
      kit.send(channels.telemetry, { battery: value, battery_charging: false }, { at_ms });
    await battery(18, start_ms + 1_000);
    const [alarm] = await kit.alarms();
    const edit = { acknowledged: { by: 'ops', at_ms: start_ms + 2_000 }, note: 'a spare is on its way' };
    await store.changeAlarm(kit_id, alarm?.id ?? '', { edit, revision: undefined });
    await battery(17, start_ms + 3_000);
    await battery(30, start_ms + 4_000);
    await battery(19, start_ms + 5_000);
    expect(await kit.alarms()).toMatchObject([
      { state: 'acknowledged', acknowledged: { by: 'ops' }, count: 2, note: 'a spare is on its way' },
    ]);
    await battery(9, start_ms + 6_000);
    expect(await kit.alarms()).toMatchObject([{ state: 'open', severity: 'critical', value: 9, count: 2 }]);
  });

  it('stay muted when they come back, until the time is over', async () => {
    const { store, kit } = await start();
    await kit.motion(true);
    const [alarm] = await kit.alarms();
    const edit = { muted_until_ms: start_ms + 120 * minute_ms };
    await store.changeAlarm(kit_id, alarm?.id ?? '', { edit, revision: undefined });
    await kit.motion(false, { at_ms: start_ms + minute_ms });
    await kit.motion(true, { at_ms: start_ms + 90 * minute_ms });
    expect(await kit.alarms()).toMatchObject([{ state: 'muted', count: 2 }]);
    expect(await kit.alarms(start_ms + 121 * minute_ms)).toMatchObject([{ state: 'open' }]);
  });

  it('end by themselves an hour after what nothing ends, and take the severity that it has', async () => {
    const { kit } = await start();
    const text = async (severity: string, at_ms: number) =>
      kit.send(channels.event(asset_id, 'messages'), { text: 'Battery failsafe', severity }, { at_ms });
    await text('critical', start_ms + 1_000);
    await text('critical', start_ms + 2_000);
    expect(await kit.alarms()).toMatchObject([
      { what: 'messages', severity: 'critical', count: 2, message: { text: 'Battery failsafe' } },
    ]);
    await kit.look(start_ms + 61 * minute_ms);
    expect(await kit.alarms()).toMatchObject([{ state: 'closed' }]);
  });

  it('are erased with what they were about, unless they are open', async () => {
    const { store, kit } = await start();
    await kit.motion(true);
    await kit.motion(false, { at_ms: start_ms + 1_000 });
    await kit.links('offline', { at_ms: start_ms + 2_000 });
    await store.eraseHistory({ kit_id, before_ms: start_ms + minute_ms }, start_ms + minute_ms);
    expect((await kit.alarms()).map(({ what }) => what)).toEqual(['link']);
  });
});
