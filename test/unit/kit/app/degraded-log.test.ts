/** The log has a line when a reason for a degraded kit begins, and one when it ends. */
import { beforeEach, expect, test } from 'vitest';
import {
  begins_after_ms,
  DegradedLog,
  ends_after_ms,
  look_every_ms,
} from '../../../../src/kit/app/degraded.ts';
import { texts } from '../../../../src/kit/app/texts.ts';

const lines: [object, string][] = [];
let now_ms: number;
let log: DegradedLog;

beforeEach(() => {
  lines.length = 0;
  now_ms = 0;
  const note = (facts: object, sentence: string): void => void lines.push([facts, sentence]);
  log = new DegradedLog(() => now_ms, { info: note, warn: note });
});

/** Looks as often as the daemon does, for so long. */
function during(ms: number, sentences: readonly string[]): void {
  for (const end_ms = now_ms + ms; now_ms < end_ms; now_ms += look_every_ms) log.look(sentences);
}

test('each reason is logged once when it begins and once when it ends, with how long it lasted', () => {
  during(600_000, [texts.clock_not_set, texts.disk_full('x')]);
  during(ends_after_ms + look_every_ms, [texts.clock_not_set]);
  expect(lines).toEqual([
    [{ text: texts.clock_not_set }, texts.degraded_began],
    [{ text: texts.disk_full('x') }, texts.degraded_began],
    [{ text: texts.disk_full('x'), lasted_s: 595 }, texts.degraded_ended],
  ]);
});

test('a reason that comes and goes for a moment is not logged', () => {
  for (let times = 0; times < 20; times += 1) {
    during(begins_after_ms / 2, [texts.clock_not_set]);
    during(30_000, []);
  }
  expect(lines).toEqual([]);
});

test('a reason that comes back soon has not ended, whatever its figure is by then', () => {
  during(60_000, [texts.quarantined(1)]);
  for (let messages = 2; messages < 20; messages += 1) {
    during(ends_after_ms / 2, []);
    during(30_000, [texts.quarantined(messages)]);
  }
  expect(lines).toEqual([[{ text: texts.quarantined(1) }, texts.degraded_began]]);
});
