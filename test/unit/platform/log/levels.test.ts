/** Levels of the log: what the configuration says, and over it what was asked for a limited time. */
import { describe, expect, it, vi } from 'vitest';
import {
  type BaseLevels,
  LogLevels,
  override_max_ms,
  overrides_max,
} from '../../../../src/platform/log/log.ts';
import { texts } from '../../../../src/platform/texts.ts';
import { useFakeTime } from '../../../support/fake-time.ts';

useFakeTime();

function lab(base: BaseLevels = { level: 'info', drivers: { gateway: 'debug' } }) {
  const expired: (readonly [name: string | null, level: string])[] = [];
  const levels = new LogLevels(base, (name, level) => expired.push([name, level]));
  return { levels, expired };
}

describe('LogLevels', () => {
  it('writes lines of the configured level and above, by driver where one has its own', () => {
    const { levels } = lab();
    expect([levels.allows('debug', undefined), levels.allows('info', undefined)]).toEqual([false, true]);
    expect([levels.allows('debug', 'gateway'), levels.allows('debug', 'mavlink')]).toEqual([true, false]);
    expect(levels.allows('fatal', 'mavlink')).toBe(true);
  });

  it('does not take names of Object for drivers', () => {
    expect(lab().levels.of('constructor')).toBe('info');
  });

  it('changes the level of one driver for a time, and returns to the configuration then', () => {
    const { levels, expired } = lab();
    levels.override('mavlink', 'debug', 60_000);
    expect([levels.of('mavlink'), levels.of('onvif')]).toEqual(['debug', 'info']);
    vi.advanceTimersByTime(59_999);
    expect(levels.of('mavlink')).toBe('debug');
    vi.advanceTimersByTime(1);
    expect(levels.of('mavlink')).toBe('info');
    expect(expired).toEqual([['mavlink', 'info']]);
  });

  it('changes the level of everything without its own, and not of a driver that has one', () => {
    const { levels, expired } = lab();
    levels.override(null, 'warn', 1_000);
    expect([levels.of(undefined), levels.of('mavlink'), levels.of('gateway')]).toEqual([
      'warn',
      'warn',
      'debug',
    ]);
    vi.advanceTimersByTime(1_000);
    expect(expired).toEqual([[null, 'info']]);
  });

  it('reports the general level that applies again when a driver loses its own while another one passes', () => {
    const { levels, expired } = lab();
    levels.override(null, 'error', 10_000);
    levels.override('mavlink', 'debug', 1_000);
    vi.advanceTimersByTime(1_000);
    expect(expired).toEqual([['mavlink', 'error']]);
    levels.close();
  });

  it('replaces a passing level by a later one, with one timer', () => {
    const { levels, expired } = lab();
    levels.override('mavlink', 'debug', 1_000);
    levels.override('mavlink', 'error', 5_000);
    expect(vi.getTimerCount()).toBe(1);
    vi.advanceTimersByTime(1_000);
    expect(levels.of('mavlink')).toBe('error');
    vi.advanceTimersByTime(4_000);
    expect(expired).toHaveLength(1);
  });

  it('lasts no longer than a day, whatever was asked', () => {
    const { levels } = lab();
    levels.override('mavlink', 'debug', 10 * override_max_ms);
    vi.advanceTimersByTime(override_max_ms);
    expect(levels.of('mavlink')).toBe('info');
  });

  it('refuses more names than its limit, and still changes those that have a level', () => {
    const { levels } = lab();
    for (let each = 0; each < overrides_max; each += 1) levels.override(`driver-${each}`, 'debug', 1_000);
    expect(() => levels.override('one-more', 'debug', 1_000)).toThrow(
      new RangeError(texts.too_many_levels(overrides_max)),
    );
    levels.override('driver-0', 'error', 1_000);
    expect(levels.of('driver-0')).toBe('error');
    levels.close();
  });

  it('ends a passing level on request, without reporting that its time is over', () => {
    const { levels, expired } = lab();
    levels.override('mavlink', 'debug', 1_000);
    levels.reset('mavlink');
    levels.reset('never-changed');
    vi.advanceTimersByTime(2_000);
    expect(levels.of('mavlink')).toBe('info');
    expect(expired).toEqual([]);
  });

  it('keeps passing levels over a reload of the configuration', () => {
    const { levels } = lab();
    levels.override('mavlink', 'debug', 1_000);
    levels.configure({ level: 'warn', drivers: { mavlink: 'error' } });
    expect([levels.of('mavlink'), levels.of('gateway')]).toEqual(['debug', 'warn']);
    levels.reset('mavlink');
    expect(levels.of('mavlink')).toBe('error');
  });

  it('shows the general level first, then each name with its own and until when', () => {
    const { levels } = lab();
    levels.override('mavlink', 'debug', 1_000);
    const until_ms = Date.now() + 1_000;
    expect(levels.view()).toEqual([
      { name: null, level: 'info', until_ms: null },
      { name: 'gateway', level: 'debug', until_ms: null },
      { name: 'mavlink', level: 'debug', until_ms },
    ]);
    levels.close();
    expect(vi.getTimerCount()).toBe(0);
  });
});
