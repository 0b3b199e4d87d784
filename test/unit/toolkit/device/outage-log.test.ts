/** One line when an outage begins and one when it is over. */
import { expect, it } from 'vitest';
import type { SessionState } from '../../../../src/toolkit/device/device-session.ts';
import { outageLog } from '../../../../src/toolkit/device/outage-log.ts';
import { texts } from '../../../../src/toolkit/device/texts.ts';
import { recordingLog } from '../../../support/recording-log.ts';

const failed = (state: 'down' | 'rejected'): SessionState => ({
  state,
  reason: 'why',
  error: new Error('why'),
  retry_ms: 1_000,
});

it.each<{ what: string; states: SessionState[]; lines: string[] }>([
  { what: 'nothing when a device answers at the first attempt', states: [{ state: 'up' }], lines: [] },
  {
    what: 'an outage once, however many attempts it takes',
    states: [failed('down'), failed('down'), { state: 'up', down_ms: 3_210 }, failed('down')],
    lines: [
      `warn ${texts.is_unavailable('camera')}`,
      `debug ${texts.is_still_unavailable('camera')}`,
      `info ${texts.is_back('camera')}`,
      `warn ${texts.is_unavailable('camera')}`,
    ],
  },
  {
    what: 'a rejection once, also within an outage',
    states: [
      failed('down'),
      failed('rejected'),
      failed('down'),
      failed('rejected'),
      { state: 'up', down_ms: 1 },
    ],
    lines: [
      `warn ${texts.is_unavailable('camera')}`,
      `error ${texts.is_rejected('camera')}`,
      `debug ${texts.is_still_unavailable('camera')}`,
      `info ${texts.is_back('camera')}`,
    ],
  },
])('logs $what', ({ states, lines }) => {
  const log = recordingLog();
  const observe = outageLog({ log, kind: 'camera', facts: { camera: 'Gate' } });
  for (const state of states) observe(state);
  expect(log.lines.map(({ level, sentence }) => `${level} ${sentence}`)).toEqual(lines);
  for (const { facts } of log.lines) expect(facts['camera']).toBe('Gate');
});

it('names the cause, the pause and the lengths as facts', () => {
  const log = recordingLog();
  const observe = outageLog({ log, kind: 'device' });
  const error = new Error('timed out');
  observe({ state: 'down', reason: 'timed out', error, retry_ms: 2_000, up_ms: 61_234 });
  observe({ state: 'up', down_ms: 3_210 });
  expect(log.lines.map(({ facts }) => facts)).toEqual([
    { reason: 'timed out', retry_ms: 2_000, err: error, up_s: 61.234 },
    { down_s: 3.21 },
  ]);
});
