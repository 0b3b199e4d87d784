import fc from 'fast-check';
import { readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  Availability,
  DayWindow,
  minute_ms,
  window_minutes,
} from '../../../../../drivers/links/probe/availability.ts';
import { texts } from '../../../../../drivers/links/texts.ts';
import { recordingLog } from '../../../../support/recording-log.ts';
import { withDirectory } from '../../../../support/temporary.ts';
import { forAll } from '../../../../support/for-all.ts';

const noon_ms = Date.UTC(2026, 11, 1, 12);
const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;

/** A run of the daemon; `booted_wall_ms` is the true time at which the machine started. */
function open(file: string, { boot = 'first', booted_wall_ms = noon_ms, log = recordingLog() } = {}) {
  // Without the timer, what is written is the test's to say.
  const availability = new Availability({
    file,
    boot: { id: boot, offset_ms: 0 },
    signal: AbortSignal.abort(),
    log,
  });
  /** Notes the state each minute from `from_ms` to `to_ms` after boot, and writes it; `clock` bends the time of day. */
  const observe = async (
    reachable: boolean | null,
    [from_ms, to_ms]: readonly [number, number],
    clock: (wall_ms: number) => number = (wall_ms) => wall_ms,
  ): Promise<void> => {
    for (let mono_ms = from_ms; mono_ms <= to_ms; mono_ms += minute_ms) {
      const wall_ms = clock(booted_wall_ms + mono_ms);
      availability.note({ link: 'wan', reachable, at: { mono_ms, wall_ms } });
    }
    await availability.save();
  };
  return Object.assign(availability, { log, observe });
}

describe('availability', () => {
  const withFile = async (fn: (file: string) => Promise<void>) =>
    withDirectory(async (dir) => fn(join(dir, 'availability.json')));

  it('counts an outage from the last answer and until the first one', async () => {
    await withFile(async (file) => {
      const kept = open(file);
      const at = (mono_ms: number) => ({ mono_ms, wall_ms: noon_ms + mono_ms });
      for (const mono_ms of [0, 50_000, 65_000]) kept.note({ link: 'wan', reachable: true, at: at(mono_ms) });
      // The last answer came at 55 s, in an earlier minute than the verdict.
      kept.note({ link: 'wan', reachable: false, at: at(66_000), since_ms: 55_000 });
      kept.note({ link: 'wan', reachable: false, at: at(80_000), since_ms: 55_000 });
      kept.note({ link: 'wan', reachable: true, at: at(90_000), since_ms: 85_000 });
      for (const mono_ms of [95_000, 100_000])
        kept.note({ link: 'wan', reachable: true, at: at(mono_ms), since_ms: 85_000 });
      expect(kept.pct('wan')).toBeCloseTo(70, 5);
    });
  });

  it('never moves a change before the time for which the state was noted', async () => {
    await withFile(async (file) => {
      const kept = open(file);
      const at = (mono_ms: number) => ({ mono_ms, wall_ms: noon_ms + mono_ms });
      kept.note({ link: 'wan', reachable: false, at: at(0) });
      kept.note({ link: 'wan', reachable: false, at: at(30_000) });
      kept.note({ link: 'wan', reachable: true, at: at(60_000), since_ms: 20_000 });
      kept.note({ link: 'wan', reachable: false, at: at(70_000), since_ms: 1_000 });
      kept.note({ link: 'wan', reachable: false, at: at(120_000), since_ms: 1_000 });
      expect(kept.pct('wan')).toBe(0);
    });
  });

  it('is the share of the observed time, unknown before a minute', async () => {
    await withFile(async (file) => {
      const kept = open(file);
      kept.note({ link: 'wan', reachable: true, at: { mono_ms: 0, wall_ms: noon_ms } });
      kept.note({ link: 'wan', reachable: true, at: { mono_ms: 59_000, wall_ms: noon_ms } });
      expect(kept.pct('wan')).toBeNull();
      kept.note({ link: 'wan', reachable: false, at: { mono_ms: 118_000, wall_ms: noon_ms } });
      expect(kept.pct('wan')).toBe(50);
      expect(kept.pct('other')).toBeNull();
    });
  });

  it('does not count time without probes', async () => {
    await withFile(async (file) => {
      const kept = open(file);
      await kept.observe(true, [0, hour_ms]);
      await kept.observe(null, [hour_ms, 3 * hour_ms]);
      // The process was stopped for five hours.
      await kept.observe(false, [8 * hour_ms, 9 * hour_ms]);
      expect(kept.pct('wan')).toBe(50);
    });
  });

  it('forgets what is older than 24 hours', async () => {
    await withFile(async (file) => {
      const kept = open(file);
      await kept.observe(false, [0, hour_ms]);
      await kept.observe(true, [hour_ms, hour_ms + day_ms]);
      expect(kept.pct('wan')).toBe(100);
    });
  });

  it('is not moved by jumps of the time of day', async () => {
    await withFile(async (file) => {
      const kept = open(file);
      let step = 0;
      const jumping = (wall_ms: number) => wall_ms + ((step += 1) % 3) * day_ms - day_ms;
      await kept.observe(true, [0, 3 * hour_ms], jumping);
      await kept.observe(false, [3 * hour_ms, 4 * hour_ms], jumping);
      expect(kept.pct('wan')).toBe(75);
    });
  });

  it('continues after a restart of the daemon, whose downtime is unknown', async () => {
    await withFile(async (file) => {
      await open(file).observe(true, [0, hour_ms]);
      const again = open(file);
      await again.observe(false, [5 * hour_ms, 6 * hour_ms]);
      expect(again.pct('wan')).toBe(50);
      const { mode } = await stat(file);
      expect(mode & 0o777).toBe(0o600);
    });
  });

  it('continues after a reboot when the clock is right, and drops minutes that a long pause made old', async () => {
    await withFile(async (file) => {
      await open(file).observe(true, [0, hour_ms]);
      const soon = open(file, { boot: 'second', booted_wall_ms: noon_ms + 2 * hour_ms });
      await soon.observe(false, [0, hour_ms]);
      expect(soon.pct('wan')).toBe(50);
      const late = open(file, { boot: 'third', booted_wall_ms: noon_ms + 3 * day_ms });
      await late.observe(false, [0, hour_ms]);
      expect(late.pct('wan')).toBe(0);
    });
  });

  it('does not count what was before a reboot until the clock is set, over restarts too', async () => {
    await withFile(async (file) => {
      await open(file).observe(true, [0, hour_ms]);
      const unset = (wall_ms: number) => wall_ms - noon_ms;
      const second = { boot: 'second', booted_wall_ms: noon_ms + 2 * hour_ms };
      await open(file, second).observe(false, [0, hour_ms], unset);
      const again = open(file, second);
      await again.observe(false, [hour_ms, 2 * hour_ms], unset);
      expect(again.pct('wan')).toBe(0);
      await again.observe(false, [2 * hour_ms, 3 * hour_ms]);
      expect(again.pct('wan')).toBe(25);
    });
  });

  it('never counts minutes recorded without a clock after another reboot', async () => {
    await withFile(async (file) => {
      await open(file).observe(false, [0, hour_ms], () => 0);
      const again = open(file, { boot: 'second', booted_wall_ms: noon_ms + hour_ms });
      await again.observe(true, [0, hour_ms]);
      expect(again.pct('wan')).toBe(100);
    });
  });

  it('starts from zero with a damaged file and logs it', async () => {
    await withFile(async (file) => {
      await writeFile(file, '{"format":1,"boots":[{"boot_id":');
      const kept = open(file);
      expect(kept.log.at('warn')).toEqual([texts.availability_unreadable]);
      await kept.observe(true, [0, hour_ms]);
      expect(JSON.parse(await readFile(file, 'utf8'))).toMatchObject({ format: 1 });
    });
  });

  it('continues without a writable disk, and logs its loss and its return once', async () => {
    await withDirectory(async (dir) => {
      const folder = join(dir, 'state');
      const kept = open(join(folder, 'availability.json'));
      await writeFile(folder, 'no folder');
      await kept.observe(true, [0, hour_ms]);
      await kept.observe(true, [hour_ms, 2 * hour_ms]);
      expect(kept.log.at('warn')).toHaveLength(1);
      expect(kept.pct('wan')).toBe(100);
      await rm(folder);
      await kept.observe(true, [2 * hour_ms, 3 * hour_ms]);
      expect(kept.log.at('info')).toEqual([texts.availability_saved]);
      await rm(folder, { recursive: true });
    });
  });

  it('keeps a quiet day in a few hundred bytes', async () => {
    await withFile(async (file) => {
      const kept = open(file);
      await kept.observe(true, [0, day_ms]);
      expect((await readFile(file)).length).toBeLessThan(300);
    });
  });
});

describe('a day in minutes', () => {
  const note = fc.record({
    minute: fc.integer({ min: -2_000, max: 4_000 }),
    up_ms: fc.integer({ min: 0, max: minute_ms }),
    down_ms: fc.integer({ min: 0, max: minute_ms }),
  });

  it('holds what a plain list of the last minutes would hold', () => {
    forAll(fc.array(note, { maxLength: 100 }), (notes) => {
      const window = new DayWindow(0);
      const model = new Map<number, { up_ms: number; down_ms: number }>();
      let newest = 0;
      for (const { minute, up_ms, down_ms } of notes) {
        window.add(minute, { up_ms, down_ms });
        newest = Math.max(newest, minute);
        for (const old of model.keys()) if (old <= newest - window_minutes) model.delete(old);
        if (minute <= newest - window_minutes) continue;
        const held = model.get(minute) ?? { up_ms: 0, down_ms: 0 };
        held.up_ms += Math.min(up_ms, minute_ms - held.up_ms - held.down_ms);
        held.down_ms += Math.min(down_ms, minute_ms - held.up_ms - held.down_ms);
        model.set(minute, held);
      }
      const sum = (key: 'up_ms' | 'down_ms') =>
        [...model.values()].reduce((total, held) => total + held[key], 0);
      expect(window.totals()).toEqual({ up_ms: sum('up_ms'), down_ms: sum('down_ms') });
    });
  });

  it('is restored unchanged from its runs', () => {
    forAll(fc.array(note, { maxLength: 60 }), (notes) => {
      const window = new DayWindow(0);
      for (const { minute, ...times } of notes) window.add(minute, times);
      const newest = Math.max(0, ...notes.map(({ minute }) => minute));
      const copy = new DayWindow(newest);
      copy.addRuns(window.runs(), newest);
      expect(copy.runs()).toEqual(window.runs());
    });
  });
});
