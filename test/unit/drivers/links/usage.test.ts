/** The accountant of the links under a virtual clock: whatever counters and clocks do, no byte is counted twice. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { calendar, monthStart } from '../../../../drivers/links/usage/calendar.ts';
import {
  count as take,
  type CounterReading,
  days_max,
  empty_ledger,
  skip,
  type UsageLedger,
  usageOf,
} from '../../../../drivers/links/usage/usage.ts';
import { forAll } from '../../../support/for-all.ts';

const day = '2026-11-21';
const reading = (more: Partial<CounterReading>): CounterReading => ({
  boot_id: 'A',
  ifindex: 3,
  rx_bytes: 0,
  tx_bytes: 0,
  uptime_ms: 0,
  isNew: false,
  speed_bps: undefined,
  day,
  ...more,
});
const count = (ledger: UsageLedger, next: CounterReading): UsageLedger => take(ledger, next).ledger;
const all = (...readings: readonly Partial<CounterReading>[]): UsageLedger =>
  readings.reduce<UsageLedger>((ledger, more) => count(ledger, reading(more)), empty_ledger);

describe('the accountant of a link', () => {
  it('counts from the first reading, and reports nothing before the second', () => {
    const first = all({ rx_bytes: 1e9 });
    expect(usageOf(first, day, 1)).toEqual({
      today_rx_gb: null,
      today_tx_gb: null,
      month_rx_gb: null,
      month_tx_gb: null,
    });
    const second = count(first, reading({ rx_bytes: 1.5e9, tx_bytes: 2e6, uptime_ms: 60_000 }));
    expect(usageOf(second, day, 1)).toMatchObject({ today_rx_gb: 0.5, today_tx_gb: 0.002 });
  });

  it('counts an interface that came to be meanwhile from its first byte', () => {
    expect(all({ rx_bytes: 7e6, isNew: true }).days).toEqual({ [day]: [7e6, 0] });
  });

  it('counts what passed while the daemon was down, in the same run of the machine', () => {
    const hours_ms = 7 * 3_600_000;
    expect(all({ rx_bytes: 1e9 }, { rx_bytes: 9e9, uptime_ms: hours_ms }).days).toEqual({ [day]: [8e9, 0] });
  });

  it('counts the whole counter after a reboot and of a re-created interface, since both begin at nothing', () => {
    const rebooted = all(
      { rx_bytes: 5e9, uptime_ms: 9e6 },
      { boot_id: 'B', rx_bytes: 3e6, uptime_ms: 60_000 },
    );
    expect(rebooted.days).toEqual({ [day]: [3e6, 0] });
    const recreated = all({ rx_bytes: 5e6 }, { ifindex: 9, rx_bytes: 2e6, uptime_ms: 1_000 });
    expect(recreated.days).toEqual({ [day]: [2e6, 0] });
  });

  it('treats a fallen counter as reset once it stays, and as wrapped only near the top of 32 bits', () => {
    const fallen = (from: number, to: number) =>
      all({ rx_bytes: from }, { rx_bytes: to, uptime_ms: 5_000 }, { rx_bytes: to, uptime_ms: 10_000 }).days[
        day
      ]?.[0];
    expect(fallen(1e9, 1_000)).toBe(1_000);
    expect(fallen(2 ** 32 - 100, 50)).toBe(150);
    expect(fallen(2 ** 32 + 100, 50)).toBe(50);
  });

  // Each as a public report has it, with the bytes that passed; null: some are not known.
  it.each<readonly [string, readonly number[], number, boolean]>([
    [
      'pdreker/fritz_exporter#208: falls a little for one reading',
      [3_717_324_887, 3_717_616_438, 3_717_611_343, 3_717_798_920, 3_718_060_786],
      735_899,
      true,
    ],
    [
      'falls a little and goes on from there',
      [3_717_324_887, 3_717_616_438, 3_717_611_343, 3_717_611_343, 3_717_798_920, 3_718_060_786],
      735_899,
      true,
    ],
    [
      'openwrt/luci#2659: wraps at 32 bits',
      [4_214_626_826, 4_258_368_365, 44_815_312, 127_007_324, 219_415_755],
      299_756_225,
      true,
    ],
    [
      'vergoh/vnstat#249: a modem that is suspended begins again, below 4 GB',
      [3.4e9, 12e3, 3.4e6, 10e3, 2e6],
      3.4e6 + 2e6,
      true,
    ],
    ['vergoh/vnstat#224, #40: PPP is dialled again', [3.9e9, 3.9e9 + 5e6, 0, 4e3], 5e6 + 4e3, true],
    ['reads zero once', [5e9, 5e9 + 1e6, 0, 5e9 + 2e6, 5e9 + 3e6], 3e6, true],
    ['reads the value of another counter once', [5e8, 5e8 + 1e6, 4.2e9, 5e8 + 2e6], 2e6, true],
    [
      'prometheus/node_exporter#1849: reads 1.5e18 once',
      [1e9, 1_567_490_476_219_662_000, 1e9 + 5e6],
      5e6,
      true,
    ],
    [
      'is taken over by the counter of the modem',
      [5e8, 5e8 + 1e6, 4.2e9, 4.2e9 + 1e6, 4.2e9 + 3e6],
      4e6,
      false,
    ],
    ['is taken over by the counter of the kernel', [4.2e9, 4.2e9 + 1e6, 2e9, 2e9 + 1e6], 2e6, false],
    ['goes on fast', [0, 3e9, 6e9], 6e9, true],
    ['rises fast for one interval', [0, 1e9, 1e9 + 5e3], 1e9 + 5e3, true],
    ['reads all ones of 32 bits once', [3.7e9, 4_294_967_295, 3.7e9 + 7e3], 7e3, true],
  ])('counts what passed while a counter %s', (_name, values, passed, isKnown) => {
    const ledger = all(...values.map((rx_bytes, at) => ({ rx_bytes, uptime_ms: at * 5_000 })));
    // Sent bytes stand still: one counter does not disturb the other.
    expect(ledger.days[day]).toEqual([passed, 0]);
    expect(ledger.unknown_on).toBe(isKnown ? undefined : day);
  });

  it('adds nothing at the moment at which a reading is wrong, so that no cap is exceeded', () => {
    const values = [3_717_616_438, 3_717_611_343, 0, 4_294_967_295, 3_717_798_920];
    const seen = values.map((_value, at) =>
      all(...values.slice(0, at + 1).map((rx_bytes, n) => ({ rx_bytes, uptime_ms: n * 5_000 }))),
    );
    expect(seen.map(({ days }) => days[day]?.[0] ?? 0)).toEqual([0, 0, 0, 0, 182_482]);
  });

  it('knows the usual rate of a link by its peak', () => {
    const peaks_bps = [900e6, null] as const;
    // openwrt/luci#2659 at the pace of the report: 180 MB between two readings.
    const fast = [4_258_368_365, 44_815_312, 227_007_324].map((rx_bytes, at) => ({
      rx_bytes,
      uptime_ms: at * 2_000,
      peaks_bps,
    }));
    expect(all(...fast).days[day]?.[0]).toBe(263_606_255);
  });

  it('discards more bytes than the link can carry, and continues from the new count', () => {
    const speed_bps = 100e6;
    const absurd = all({}, { rx_bytes: 9e15, uptime_ms: 5_000, speed_bps });
    expect(absurd.days[day]?.[0]).toBe(0);
    const next = count(absurd, reading({ rx_bytes: 9e15 + 1_000, uptime_ms: 10_000, speed_bps }));
    expect(next.days[day]?.[0]).toBe(1_000);
  });

  it('holds bytes back while the clock is not set, and adds them to the day on which it is set', () => {
    const waiting = all({ rx_bytes: 0 }, { rx_bytes: 4e6, uptime_ms: 60_000, day: null });
    expect(waiting.days).toEqual({});
    expect(usageOf(waiting, null, 1).today_rx_gb).toBeNull();
    const set = count(waiting, reading({ rx_bytes: 5e6, uptime_ms: 65_000 }));
    expect(set.days).toEqual({ [day]: [5e6, 0] });
    expect(set.pending).toEqual([0, 0]);
  });

  it('does not count what another link counts, also not afterwards', () => {
    const before = all({ rx_bytes: 0 }, { rx_bytes: 1e6, uptime_ms: 5_000 });
    const covered = skip(before, reading({ rx_bytes: 9e6, uptime_ms: 10_000 }));
    const after = count(covered, reading({ rx_bytes: 9.5e6, uptime_ms: 15_000 }));
    expect(after.days[day]?.[0]).toBe(1.5e6);
  });

  it('sums the billing month from its first day, whichever day that is', () => {
    const ledger: UsageLedger = {
      ...empty_ledger,
      days: {
        '2026-10-14': [1e9, 0],
        '2026-10-15': [2e9, 0],
        '2026-11-14': [4e9, 0],
        '2030-01-01': [8e9, 0],
      },
    };
    expect(usageOf(ledger, '2026-11-14', 15).month_rx_gb).toBe(6);
    expect(usageOf(ledger, '2026-11-15', 15)).toMatchObject({ today_rx_gb: 0, month_rx_gb: 0 });
    expect(usageOf(ledger, '2026-11-14', 1).month_rx_gb).toBe(4);
  });

  it('keeps in the billing month what was counted on a day ahead, once the clock is set back', () => {
    let ledger = all({ rx_bytes: 0, day: '2026-11-29' });
    ledger = count(ledger, reading({ rx_bytes: 3_000_000, uptime_ms: 1_000, day: '2026-11-29' }));
    ledger = count(ledger, reading({ rx_bytes: 4_000_000, uptime_ms: 2_000, day: '2026-11-26' }));
    expect(usageOf(ledger, '2026-11-26', 1)).toMatchObject({ today_rx_gb: 0.001, month_rx_gb: 0.004 });
    expect(usageOf(ledger, '2026-11-26', 28)).toMatchObject({ month_rx_gb: 0.001 });
  });

  it('forgets the oldest days', () => {
    let ledger = all({});
    for (let at = 0; at < days_max + 10; at += 1) {
      const date = new Date(Date.UTC(2026, 10, 1 + at)).toISOString().slice(0, 10);
      ledger = count(ledger, reading({ rx_bytes: at, uptime_ms: at * 1_000, day: date }));
    }
    expect(Object.keys(ledger.days)).toHaveLength(days_max);
    expect(Object.keys(ledger.days)[0]).toBe('2026-11-11');
  });

  it('counts every byte once through any mixture of restarts, reboots and new interfaces', () => {
    const step = fc.record({
      bytes: fc.integer({ min: 0, max: 1_000_000 }),
      what: fc.constantFrom('run', 'reboot', 'replug', 'reset', 'clock lost'),
    });
    forAll(fc.array(step, { maxLength: 50 }), (steps) => {
      let ledger = all({});
      let [rx_bytes, uptime_ms, boots, ifindex, total] = [0, 0, 0, 3, 0];
      for (const { bytes, what } of steps) {
        if (what === 'reboot') [rx_bytes, uptime_ms, boots] = [0, 0, boots + 1];
        if (what === 'replug') [rx_bytes, ifindex] = [0, ifindex + 1];
        // A reset is seen only if the counter is below where it was, twice: it is read at its lowest first.
        if (what === 'reset') {
          rx_bytes = 0;
          for (let reads = 0; reads < 2; reads += 1)
            ledger = count(ledger, reading({ boot_id: `${boots}`, ifindex, rx_bytes, uptime_ms }));
        }
        rx_bytes += bytes;
        total += bytes;
        uptime_ms += 5_000;
        const known = what === 'clock lost' ? null : day;
        ledger = count(ledger, reading({ boot_id: `${boots}`, ifindex, rx_bytes, uptime_ms, day: known }));
      }
      // The ledger began in a boot of another name, so its whole counter was new too.
      expect((ledger.days[day]?.[0] ?? 0) + ledger.pending[0]).toBe(total);
    });
  });
});

describe('the calendar of the accountant', () => {
  it('changes the day at midnight of its zone', () => {
    const utc = calendar('UTC');
    const auckland = calendar('Pacific/Auckland');
    const evening_ms = Date.UTC(2026, 10, 30, 23, 59, 59);
    expect([utc(evening_ms), auckland(evening_ms)]).toEqual(['2026-11-30', '2026-12-01']);
    expect(utc(evening_ms + 1_000)).toBe('2026-12-01');
  });

  it('has a day of 23 and one of 25 hours where the clocks are changed', () => {
    const berlin = calendar('Europe/Berlin');
    const hours = (from_ms: number, day: string): number =>
      Array.from({ length: 72 }, (_, hour) => berlin(from_ms + hour * 3_600_000)).filter(
        (each) => each === day,
      ).length;
    expect(hours(Date.UTC(2027, 2, 27), '2027-03-28')).toBe(23);
    expect(hours(Date.UTC(2027, 9, 30), '2027-10-31')).toBe(25);
  });

  it('gives every byte to the day of its zone over midnights at which the clocks are changed', () => {
    // Beirut skips the first hour of that Sunday: its midnight does not exist.
    const beirut = calendar('Asia/Beirut');
    const begin_ms = Date.UTC(2027, 2, 27, 0);
    let ledger = all({});
    for (let hour = 0; hour <= 72; hour += 1) {
      const day_there = beirut(begin_ms + hour * 3_600_000);
      ledger = count(ledger, reading({ rx_bytes: hour * 1e6, uptime_ms: hour * 3_600_000, day: day_there }));
    }
    expect(ledger.days['2027-03-28']?.[0]).toBe(23e6);
    const total = Object.values(ledger.days).reduce((sum, [rx]) => sum + rx, 0);
    expect(total).toBe(72e6);
  });

  it('has no day while the clock shows an impossible time', () => {
    expect(calendar('UTC')(Date.UTC(1970, 0, 1, 0, 1))).toBeNull();
    expect(calendar('UTC')(Number.NaN)).toBeNull();
  });

  it.each([
    ['2026-11-21', 1, '2026-11-01'],
    ['2026-11-14', 15, '2026-10-15'],
    ['2027-01-05', 28, '2026-12-28'],
    ['2028-02-29', 28, '2028-02-28'],
    ['2027-02-27', 31, '2027-01-31'],
    ['2027-02-28', 31, '2027-02-28'],
    ['2027-03-30', 31, '2027-02-28'],
    ['2027-04-30', 31, '2027-04-30'],
    ['2028-02-28', 30, '2028-01-30'],
    ['2028-02-29', 30, '2028-02-29'],
    ['2027-01-30', 31, '2026-12-31'],
  ])('the month of %s that begins on day %i began on %s', (today, starts_on, start) => {
    expect(monthStart(today, starts_on)).toBe(start);
  });
});
