/** The texts of /proc. */
import { expect, it } from 'vitest';
import { cpuPct, memPct, parseCpu, uptime_s } from '../../../../drivers/gateway/proc.ts';

it('counts idle and iowait as not busy, and guest time once', () => {
  const stat = 'cpu  100 10 50 800 40 5 5 0 60 0\ncpu0 1 1 1 1\n';
  expect(parseCpu(stat)).toEqual({ busy: 170, total: 1_010 });
});

it('reports no load from one reading, without time between, or after a reboot', () => {
  const reading = { busy: 100, total: 1_000 };
  expect(cpuPct(undefined, reading)).toBeUndefined();
  expect(cpuPct(reading, reading)).toBeUndefined();
  expect(cpuPct(reading, { busy: 1, total: 10 })).toBeUndefined();
});

it('computes the load between two readings with one decimal, within 0 and 100', () => {
  const before = { busy: 100, total: 1_000 };
  expect(cpuPct(before, { busy: 137, total: 1_300 })).toBe(12.3);
  expect(cpuPct(before, { busy: 90, total: 1_010 })).toBe(0);
  expect(cpuPct(before, { busy: 120, total: 1_010 })).toBe(100);
});

it('counts available memory as free', () => {
  const meminfo = 'MemTotal:        1000 kB\nMemFree:   1 kB\nMemAvailable:     250 kB\n';
  expect(memPct(meminfo)).toBe(75);
});

it('reports missing values as unknown', () => {
  expect(parseCpu('')).toBeUndefined();
  expect(parseCpu('cpu  a b c d\n')).toBeUndefined();
  expect(memPct('MemTotal: 1000 kB\n')).toBeUndefined();
  expect(memPct('MemTotal: 1000 kB\nMemAvailable: 2000 kB\n')).toBeUndefined();
  expect(uptime_s('')).toBeUndefined();
  expect(uptime_s('12.9 4.0\n')).toBe(12);
});
