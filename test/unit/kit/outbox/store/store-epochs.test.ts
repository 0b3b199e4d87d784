import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { EpochChoice, EpochMemory } from '../../../../../src/kit/outbox/store/epochs.ts';
import { rowId } from '../../../../../src/kit/outbox/row.ts';
import { Rng } from '../../../../sim/world/rng.ts';
import { StoreLab, work } from '../../../../support/disk/store-lab.ts';

const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;
const year_2025_ms = Date.UTC(2025, 5, 1);
const year_2026_ms = Date.UTC(2026, 0, 1);

/** Puts a directory where the buffer file is: nothing can open it, as on a disk that fails. */
function breakFile(lab: StoreLab): void {
  lab.store.close();
  renameSync(lab.file, `${lab.file}.hidden`);
  mkdirSync(lab.file);
}

function mendFile(lab: StoreLab): void {
  rmSync(lab.file, { recursive: true });
  renameSync(`${lab.file}.hidden`, lab.file);
}

/** The directory of the buffer with a directory in place of the epoch's file: neither can be written. */
function breakDisk(lab: StoreLab): void {
  breakFile(lab);
  rmSync(`${lab.file}.epoch`, { force: true });
  mkdirSync(`${lab.file}.epoch`);
}

/** Starts with a file that cannot be opened. */
function startBroken(lab: StoreLab, runtime_dir?: string): number {
  lab.store.close();
  return lab.open({ runtime_dir }).epoch;
}

describe('the epoch of a start', () => {
  test('is one above the last, also when only the small file beside the buffer can be read', () => {
    using lab = new StoreLab();
    lab.reopen();
    const { epoch } = lab.opened;
    breakFile(lab);
    expect(startBroken(lab)).toBe(epoch + 1);
    expect(startBroken(lab)).toBe(epoch + 2);
    lab.store.close();
    mendFile(lab);
    expect(lab.open().epoch).toBe(epoch + 3);
  });

  test('is above that of an erased buffer file', () => {
    using lab = new StoreLab();
    for (let n = 0; n < 5; n += 1) lab.reopen();
    const { epoch } = lab.opened;
    lab.store.close();
    for (const part of ['', '-wal', '-shm']) rmSync(lab.file + part, { force: true });
    expect(lab.open().epoch).toBe(epoch + 1);
  });

  test('rises with every start on a disk that cannot be written, by the file in the runtime directory', () => {
    using lab = new StoreLab();
    const runtime_dir = join(lab.dir, 'run');
    mkdirSync(runtime_dir);
    lab.reopen({ runtime_dir });
    const epochs = [lab.opened.epoch];
    breakDisk(lab);
    for (let n = 0; n < 30; n += 1) epochs.push(startBroken(lab, runtime_dir));
    expect(epochs).toEqual(epochs.map((_, index) => (epochs[0] ?? 0) + index));
    rmSync(`${lab.file}.epoch`, { recursive: true });
    lab.store.close();
    mendFile(lab);
    expect(lab.open({ runtime_dir }).epoch).toBe((epochs.at(-1) ?? 0) + 1);
  });

  test('rises with every boot on a disk that cannot be written, by the time since it was', () => {
    using lab = new StoreLab();
    const epochs = [lab.opened.epoch];
    breakDisk(lab);
    const written = new Date(lab.clock.wall_ms);
    for (const path of [lab.file, `${lab.file}.epoch`]) utimesSync(path, written, written);
    for (let boot = 0; boot < 20; boot += 1) {
      lab.clock.pass(180_000);
      const runtime_dir = join(lab.dir, `run-${boot}`);
      mkdirSync(runtime_dir);
      epochs.push(startBroken(lab, runtime_dir), startBroken(lab, runtime_dir));
    }
    expect(epochs).toEqual([...new Set(epochs)].sort((a, b) => a - b));
  });

  test('rises with every start on a disk that cannot be written, also where no runtime directory exists', () => {
    using lab = new StoreLab();
    const epochs = [lab.opened.epoch];
    breakDisk(lab);
    const written = new Date(lab.clock.wall_ms);
    for (const path of [lab.file, `${lab.file}.epoch`]) utimesSync(path, written, written);
    for (const pause_ms of [
      ...Array<number>(30).fill(2_000),
      ...Array<number>(10).fill(3_600_000),
      30_000,
      30_000,
    ]) {
      lab.clock.pass(pause_ms);
      epochs.push(startBroken(lab));
    }
    expect(epochs).toEqual([...new Set(epochs)].sort((a, b) => a - b));
  });

  test('is never published by two starts, however soon they follow on a disk that stores nothing', () => {
    using lab = new StoreLab();
    breakDisk(lab);
    const written = new Date(lab.clock.wall_ms);
    for (const path of [lab.file, `${lab.file}.epoch`]) utimesSync(path, written, written);
    const random = new Rng('starts');
    for (const [age_ms, step_ms] of [
      [1, 3_000],
      [day_ms - 10_000, 3_000],
      [2 * day_ms, 40_000],
      [90 * day_ms, 40_000],
    ] as const) {
      lab.clock.wall_ms = Math.max(lab.clock.wall_ms, written.getTime() + age_ms);
      const starts = Array.from({ length: 60 }, () => {
        lab.clock.pass(random.int(1, step_ms));
        lab.store.close();
        const { epoch, epoch_wait_ms } = lab.open({ runtime_dir: undefined });
        return { epoch, from_ms: lab.clock.wall_ms + epoch_wait_ms, at_ms: lab.clock.wall_ms };
      });
      const epochs = starts.map(({ epoch }) => epoch);
      expect(epochs).toEqual(epochs.toSorted((one, other) => one - other));
      // Where an epoch comes twice, the process before had ended without publishing anything.
      const twice = starts.slice(1).filter(({ epoch }, index) => starts[index]?.epoch === epoch);
      expect(twice.filter(({ at_ms, from_ms }) => at_ms >= from_ms)).toEqual([]);
      expect(Math.max(...starts.map(({ at_ms, from_ms }) => from_ms - at_ms))).toBeLessThanOrEqual(30_000);
    }
  });

  test('may be published at once where it is kept', () => {
    using lab = new StoreLab();
    const runtime_dir = join(lab.dir, 'run');
    mkdirSync(runtime_dir);
    expect(lab.reopen({ runtime_dir }).epoch_wait_ms).toBe(0);
    breakDisk(lab);
    lab.clock.pass(2 * day_ms);
    lab.store.close();
    expect(lab.open({ runtime_dir }).epoch_wait_ms).toBe(0);
  });

  test('does not follow a small file that holds nonsense', () => {
    using lab = new StoreLab();
    const { epoch } = lab.opened;
    for (const [index, text] of ['', 'x', '-5', '1e300', '9007199254740993', '1048576'].entries()) {
      lab.store.close();
      writeFileSync(`${lab.file}.epoch`, text);
      expect(lab.open().epoch).toBe(epoch + index + 1);
    }
    expect(readFileSync(`${lab.file}.epoch`, 'utf8')).toBe(`${lab.opened.epoch}\n`);
  });

  test('of a new file without a clock differs between installations, rises, and stays below the hours since 2026', () => {
    const first = Array.from({ length: 6 }, () => {
      using lab = new StoreLab();
      lab.clock.wall_ms = year_2025_ms;
      lab.store.close();
      for (const part of ['', '-wal', '-shm', '.epoch']) rmSync(lab.file + part, { force: true });
      const opened = lab.open();
      expect(lab.reopen().epoch).toBe(opened.epoch + 1);
      lab.clock.wall_ms = Date.UTC(2026, 10, 21);
      expect(lab.reopen().epoch).toBe((lab.clock.wall_ms - year_2026_ms) / hour_ms);
      return opened.epoch;
    });
    expect(new Set(first).size).toBeGreaterThan(3);
    expect(Math.max(...first)).toBeLessThan(5_000);
  });
});

describe('an epoch that begins in the running process', () => {
  test('is at least the one that is asked for, and the next start is above it', () => {
    using lab = new StoreLab();
    const { epoch } = lab.opened;
    expect(lab.store.beginEpoch(0)).toBe(epoch + 1);
    expect(lab.store.beginEpoch(epoch + 50)).toBe(epoch + 50);
    expect(lab.store.beginEpoch(2 ** 53)).toBe(epoch + 51);
    expect(lab.store.beginEpoch(Number.NaN)).toBe(epoch + 52);
    expect(lab.reopen().epoch).toBe(epoch + 53);
  });

  test('knows the clock of the boot, and acknowledgements of both epochs', () => {
    using lab = new StoreLab();
    lab.store.setClockOffset(1_790_000_000_000);
    const task = lab.row('task', 1, { mono_ms: 3_000 });
    const epoch = lab.store.beginEpoch(0);
    const next = { ...lab.row('task', 1, { mono_ms: 4_000 }), id: epoch * 2 ** 33 + 1 };
    lab.store.commit(work({ rows: [task, next] }));
    const { rows } = lab.store.take({ lane: 'task', form: 'rows', rows_max: 9, bytes_max: 1e6 });
    expect(rows.map(({ time_ms }) => time_ms)).toEqual([1_790_000_003_000, 1_790_000_004_000]);
    lab.store.commit(work({ unconfirmed: rows }));
    expect(lab.store.confirm({ epoch: lab.opened.epoch, ranges: [[1, 1]] }).released).toBe(1);
    expect(lab.store.confirm({ epoch, ranges: [[1, 1]] })).toMatchObject({ released: 1, ignored: undefined });
  });

  test('while the disk refuses is known to the file as soon as that can be opened', () => {
    using lab = new StoreLab();
    breakFile(lab);
    const epoch = startBroken(lab);
    expect(lab.store.beginEpoch(epoch + 7)).toBe(epoch + 7);
    mendFile(lab);
    lab.store.commit(work({}));
    lab.store.close();
    const db = new Database(lab.file, { readonly: true });
    expect(db.prepare("SELECT value FROM meta WHERE key = 'epoch'").pluck().get()).toBe(epoch + 7);
    db.close();
    expect(lab.open().epoch).toBe(epoch + 8);
  });

  test('while the disk refuses leaves the one before it known, so that its messages are released', () => {
    using lab = new StoreLab();
    breakFile(lab);
    const before = startBroken(lab);
    lab.store.beginEpoch(before + 7);
    mendFile(lab);
    const row = { ...lab.row('task', 1), id: rowId({ epoch: before, seq: 1 }) };
    lab.store.commit(work({ rows: [row] }));
    lab.store.commit(work({ unconfirmed: [row] }));
    expect(lab.store.confirm({ epoch: before, ranges: [[1, 1]] })).toMatchObject({
      released: 1,
      ignored: undefined,
    });
  });

  test('leaves an epoch without a clock for the hours since 2026', () => {
    using lab = new StoreLab();
    const choice = new EpochChoice(new EpochMemory(join(lab.dir, 'other.db'), undefined), lab.clock);
    expect(choice.rollOver(17, 0)).toBe((lab.clock.wall_ms - year_2026_ms) / hour_ms);
  });
});

describe('the owner of a buffer file', () => {
  const [ours, theirs] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222'];

  test('is the kit that uses it first, also of a file of before', () => {
    using lab = new StoreLab();
    lab.store.commit(work({ rows: lab.rows('task', 1, 3) }));
    expect(lab.reopen({ kit_id: ours })).toMatchObject({ salvage: undefined, depth: { task: { rows: 3 } } });
    expect(lab.reopen({ kit_id: ours })).toMatchObject({ salvage: undefined, depth: { task: { rows: 3 } } });
  });

  test('keeps its messages when the kit_id changes: they are moved aside unchanged, and epochs continue', () => {
    using lab = new StoreLab();
    lab.reopen({ kit_id: ours });
    lab.store.commit(work({ rows: [...lab.rows('task', 1, 3), ...lab.rows('presence', 4, 4)] }));
    const { epoch } = lab.opened;
    const opened = lab.reopen({ kit_id: theirs });
    const moved_to = `${lab.file}.other-kit-1`;
    expect(opened).toMatchObject({
      epoch: epoch + 1,
      depth: { task: { rows: 0 } },
      announced: [],
      salvage: { kind: 'other_kit', moved_to, rows_saved: 0, rows_lost: null },
    });
    expect(opened.salvage?.cause).toContain(ours);
    expect(lab.takeSeqs('task')).toEqual([]);
    expect(lab.reopen().salvage).toBeUndefined();
    lab.store.close();
    for (const part of ['', '-wal', '-shm']) rmSync(lab.file + part, { force: true });
    renameSync(moved_to, lab.file);
    expect(lab.open({ kit_id: ours })).toMatchObject({ epoch: epoch + 3, depth: { task: { rows: 3 } } });
  });

  test('is read from a damaged file too: nothing of another kit is salvaged', () => {
    using lab = new StoreLab();
    lab.reopen({ kit_id: ours });
    lab.store.commit(work({ rows: lab.rows('task', 1, 3) }));
    const { epoch } = lab.opened;
    lab.store.close();
    const bytes = readFileSync(lab.file);
    bytes.fill(0xa5, 0, 100);
    writeFileSync(lab.file, bytes);
    const opened = lab.open({ kit_id: theirs });
    expect(opened.depth.task.rows).toBe(0);
    expect(opened.epoch).toBeGreaterThan(epoch);
    expect(existsSync(`${lab.file}.damaged-1`)).toBe(true);
    expect(readdirSync(lab.dir).filter((name) => name.includes('other-kit'))).toEqual([]);
  });
});

describe('a buffer file that was copied to another machine', () => {
  test('begins a distant epoch once and reports it', () => {
    using lab = new StoreLab();
    expect(lab.reopen({ machine: 'a' }).machine_changed).toBe(false);
    const { epoch } = lab.opened;
    expect(lab.reopen({ machine: 'a' })).toMatchObject({ epoch: epoch + 1, machine_changed: false });
    const opened = lab.reopen({ machine: 'b' });
    expect(opened.machine_changed).toBe(true);
    expect(opened.epoch).toBeGreaterThan(epoch + 100);
    expect(lab.reopen({ machine: 'b' })).toMatchObject({ epoch: opened.epoch + 1, machine_changed: false });
    expect(lab.reopen({ machine: undefined }).machine_changed).toBe(false);
  });
});
