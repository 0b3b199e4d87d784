/**
 * An old copy of the state is put back, as of a disk image, a backup or the other half of an A/B update, and the machine boots.
 * Restores hand out used positions again elsewhere too: HarperFast/harper#2451, submersion-app/submersion#309. No broker shows
 * when all retained messages have come (mqttjs/MQTT.js#292, eclipse-paho/paho.mqtt.golang#663), so nothing waits for them.
 */
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startStore, type StartStore } from '../../../../src/kit/outbox/live/store-client.ts';
import type { Clock } from '../../../../src/platform/clock.ts';
import { messagesIn, openLab, type OutboxLab, steadyClock } from '../../../support/disk/outbox-lab.ts';
import { StoreLab } from '../../../support/disk/store-lab.ts';
import { eventually } from '../../../support/eventually.ts';
import { makeDirectory } from '../../../support/temporary.ts';

const numbers = { random: Math.random };
const hour_ms = 3_600_000;
const first_hour_ms = Date.UTC(2026, 0, 1);

let dir: string;
let state: string;
let lab: OutboxLab;
/** What the cloud has received, by number. */
let received: Map<string, unknown>;
let twice: string[];

async function start(options: Parameters<typeof openLab>[1] = {}): Promise<void> {
  lab = await openLab(state, { numbers, ...options });
}

/** Sends what waits; a number that comes with another message is noted. */
async function deliver(): Promise<void> {
  lab.connect();
  const outgoing = await lab.pump(
    (each) => lab.outbox.dispatch.acknowledged(each, { hasSubscribers: true }),
    () => lab.outbox.ledger().buffered === 0,
  );
  for (const { epoch, seq, data } of outgoing.flatMap(messagesIn)) {
    const key = `${epoch}/${seq}`;
    if (received.has(key) && JSON.stringify(received.get(key)) !== JSON.stringify(data)) twice.push(key);
    received.set(key, data);
  }
}

/** As the cloud's retained `down/ack`: the newest epoch with its lowest ranges. */
function newestAck(): { epoch: number; ranges: [number, number][] } {
  const positions = [...received.keys()].map((key) => key.split('/').map(Number));
  const epoch = Math.max(...positions.map(([each = 0]) => each));
  const seqs = positions.filter(([each]) => each === epoch).map(([, seq = 0]) => seq);
  return { epoch, ranges: [[Math.min(...seqs), Math.max(...seqs)]] };
}

/** A run, a copy of its state after it, `runs_after` more runs, and the copy in the place of the state. */
async function restoreAfter(runs_after: number, clock: Clock): Promise<void> {
  mkdirSync(state);
  await start({ clock });
  for (let n = 0; n < 20; n += 1) lab.send('alarm', n);
  await deliver();
  lab.outbox.dispatch.disconnected();
  for (let n = 20; n < 25; n += 1) lab.send('alarm', n);
  await lab.outbox.close();
  cpSync(state, join(dir, 'copy'), { recursive: true });
  for (let run = 1; run <= runs_after; run += 1) {
    await start({ clock });
    for (let n = 0; n < 20; n += 1) lab.send('alarm', run * 100 + n);
    await deliver();
    await lab.outbox.close();
  }
  rmSync(state, { recursive: true });
  cpSync(join(dir, 'copy'), state, { recursive: true });
}

const clockless: Clock = { ...steadyClock(), stamp: () => ({ ...steadyClock().stamp(), synced: false }) };

describe('Outbox with an old copy of its state', () => {
  beforeEach(async () => {
    dir = await makeDirectory();
    state = join(dir, 'state');
    received = new Map();
    twice = [];
  });
  afterEach(async () => {
    await lab.outbox.close();
    await rm(dir, { recursive: true });
  });

  it.each([
    { what: 'the broker keeps an acknowledgement', offline: false, acks: true, clock: steadyClock() },
    {
      what: 'it starts offline, and finds the acknowledgement later',
      offline: true,
      acks: true,
      clock: steadyClock(),
    },
    { what: 'the cloud never acknowledges', offline: true, acks: false, clock: steadyClock() },
    { what: 'the clock is not set', offline: true, acks: true, clock: clockless },
    {
      what: 'the clock is not set and the cloud never acknowledges',
      offline: true,
      acks: false,
      clock: clockless,
    },
  ])('gives no number to a second message: $what', async ({ offline, acks, clock }) => {
    await restoreAfter(1, clock);
    const used = new Set(received.keys());
    const highest = newestAck().epoch;
    await start({ clock });
    if (offline) for (let n = 0; n < 20; n += 1) lab.send('alarm', 900 + n);
    if (offline) await lab.outbox.flush();
    if (acks) lab.outbox.confirm(newestAck());
    if (acks) await eventually('an epoch above all before', () => lab.outbox.epoch > highest);
    await deliver();
    for (let n = 0; n < 20; n += 1) lab.send('alarm', 950 + n);
    await deliver();
    expect(twice).toEqual([]);
    expect(received.size - used.size).toBe(offline ? 40 : 20);
  });

  it('sends what the copy held under the numbers that it had, so that the cloud drops it as seen', async () => {
    await restoreAfter(1, steadyClock());
    const before = new Map(received);
    await start();
    await deliver();
    expect(lab.outbox.ledger().buffered).toBe(0);
    expect(received).toEqual(before);
  });

  it('leaves an epoch that others share when the cloud names numbers below its own', async () => {
    mkdirSync(state);
    await start({ numbers: { random: () => 0.5 } });
    const { epoch } = lab.outbox;
    const seq = lab.send('alarm', 1);
    lab.outbox.confirm({ epoch, ranges: [[1, seq]] });
    await lab.outbox.flush();
    expect(lab.outbox.epoch).toBe(epoch);
    lab.outbox.confirm({
      epoch,
      ranges: [
        [1, 12],
        [seq, seq],
      ],
    });
    await eventually('a higher epoch', () => lab.outbox.epoch > epoch);
  });

  it('leaves an epoch that was chosen without the time as soon as the clock is right', async () => {
    mkdirSync(state);
    const clock = { ...steadyClock(), synced: false };
    const asked = { ...clock, stamp: () => ({ ...steadyClock().stamp(), synced: clock.synced }) };
    const chosen_without: StartStore = async (options) => {
      const { client, opened } = await startStore(options);
      return { client, opened: { ...opened, epoch: 17 } };
    };
    lab = await openLab(state, { clock: asked, start: chosen_without });
    expect(lab.outbox.epoch).toBe(17);
    clock.synced = true;
    const hours = Math.floor((Date.now() - first_hour_ms) / hour_ms);
    await eventually('the hours since 2026', () => lab.outbox.epoch >= hours);
  });

  it('keeps an epoch that was chosen by a clock which turns out to be right', async () => {
    mkdirSync(state);
    const clock = { synced: false };
    const begun: number[] = [];
    await start({
      clock: { ...steadyClock(), stamp: () => ({ ...steadyClock().stamp(), synced: clock.synced }) },
      onEpoch: (epoch) => begun.push(epoch),
    });
    const { epoch } = lab.outbox;
    clock.synced = true;
    lab.send('alarm', 1);
    await lab.outbox.flush();
    await lab.outbox.close();
    await start();
    expect(begun).toEqual([]);
    expect(lab.outbox.epoch).toBe(epoch + 1);
  });
});

describe('the epoch of a start with an old copy of the file', () => {
  /** Starts `starts` times after the copy, which is put back. */
  function restored(store: StoreLab, starts: number): number {
    store.store.close();
    const copy = `${store.dir}-copy`;
    cpSync(store.dir, copy, { recursive: true });
    store.open();
    for (let n = 1; n < starts; n += 1) store.reopen();
    const { epoch } = store.opened;
    store.store.close();
    rmSync(store.dir, { recursive: true });
    cpSync(copy, store.dir, { recursive: true });
    rmSync(copy, { recursive: true });
    return epoch;
  }

  it.each([
    { what: 'hours after the last start', passes_ms: 2 * hour_ms, isAbove: true },
    { what: 'a year after it', passes_ms: 8_760 * hour_ms, isAbove: true },
    { what: 'with the clock of the copy', passes_ms: 0, isAbove: false },
    { what: 'with a clock of 1970', passes_ms: -Date.UTC(2026, 10, 21), isAbove: false },
    { what: 'with a clock that is decades ahead', passes_ms: 40 * 8_760 * hour_ms, isAbove: false },
  ])('is above those before with a clock that is right: $what', ({ passes_ms, isAbove }) => {
    using store = new StoreLab();
    const before = store.opened.epoch;
    const used = restored(store, 1);
    store.clock.wall_ms += passes_ms;
    const { epoch } = store.open();
    const hours = Math.floor((store.clock.wall_ms - first_hour_ms) / hour_ms);
    expect(epoch).toBe(isAbove ? hours : before + 1);
    expect(epoch > used).toBe(isAbove);
  });

  it('is apart from those of the machine that the copy was taken from', () => {
    using store = new StoreLab({}, { machine: 'a' });
    const used = restored(store, 20);
    expect(store.open({ machine: 'b' }).epoch).toBeGreaterThan(used);
  });
});
