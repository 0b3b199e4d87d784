/** The log has a line when a reason for a degraded kit begins, and one when it ends. */
import { beforeEach, expect, test, describe, it } from 'vitest';
import {
  begins_after_ms,
  DegradedLog,
  ends_after_ms,
  look_every_ms,
  healthReasons,
} from '../../../../src/kit/app/degraded.ts';
import { texts } from '../../../../src/kit/app/texts.ts';
import { failingAsset } from '../../../support/kit/troubles.ts';

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

const fault = 'rtsp:// would send the password without TLS; change it';
const well = {
  name: 'Yard',
  health: { stream: { state: 'works', reason: null, next_try_at: null } },
} as const;

describe('the sentence about assets that do not deliver something', () => {
  it('names the assets whose stream is withheld, and what to do', () => {
    const assets = [failingAsset('Gate', 'stream', fault), well, failingAsset('Roof', 'stream', fault)];
    expect(healthReasons(assets)).toEqual([`no video of Gate, Roof: ${fault}`]);
  });

  it('stays one sentence however many cameras there are', () => {
    const assets = Array.from({ length: 64 }, (_, index) => failingAsset(`C${index}`, 'stream', fault));
    expect(healthReasons(assets)).toEqual([`no video of C0, C1, C2, C3 and 60 more: ${fault}`]);
  });

  it('is one for each thing and each answer', () => {
    const assets = [failingAsset('Gate', 'events', 'full'), failingAsset('Yard', 'events', 'gone'), well];
    expect(healthReasons(assets)).toEqual(['no events of Gate: full', 'no events of Yard: gone']);
  });

  it('is left out while everything is delivered or not offered', () => {
    const without = { state: 'not_offered', reason: 'is fixed', next_try_at: null } as const;
    expect(healthReasons([well, { name: 'Gate', health: { commands: without } }])).toEqual([]);
  });
});
