/** Progress of long work. */
import { expect, it, test } from 'vitest';
import { drainText, LiveLine, stepsOn, progressText } from '../../../../src/cli/terminal/progress.ts';

test.each([
  [0, 10, `copying  ${'░'.repeat(20)}    0 %`],
  [5, 10, `copying  ${'█'.repeat(10)}${'░'.repeat(10)}   50 %`],
  [999, 1_000, `copying  ${'█'.repeat(20)}   99 %`],
  [10, 10, `copying  ${'█'.repeat(20)}  100 %`],
  [12, 10, `copying  ${'█'.repeat(20)}  100 %`],
  [0, 0, `copying  ${'░'.repeat(20)}    0 %`],
])('%i of %i', (done, total, shown) => {
  expect(progressText({ what: 'copying', done, total })).toBe(shown);
});

test.each([
  [
    { from: 20_000, left: 12_340, per_s: 1_211.4, left_s: 10.2 },
    `draining  ${'█'.repeat(8)}${'░'.repeat(12)}   38 %  12,340 messages left  1,211/s  10s left`,
  ],
  [
    { from: 1_000, left: 1_000, per_s: 0, left_s: null },
    `draining  ${'░'.repeat(20)}    0 %  1,000 messages left  0/s`,
  ],
])('drain %j', (drain, shown) => {
  expect(drainText(drain)).toBe(shown);
});

it('stays below the lines that are written, within the width, and is removed without a trace', () => {
  const written: string[] = [];
  const write = (text: string): void => void written.push(text);
  const live = new LiveLine({ write, isTTY: true, columns: 5 });
  live.above(() => write('first\n'));
  live.show('half done');
  live.show('half done');
  live.above(() => write('second\n'));
  live.show('');
  live.above(() => write('third\n'));
  const clear = '\r\u001B[K';
  expect(written).toEqual(['first\n', `${clear}half…`, clear, 'second\n', 'half…', clear, 'third\n']);
});

it('shows nothing where there is no terminal', () => {
  const written: string[] = [];
  const live = new LiveLine({ write: (text) => written.push(text) });
  live.show('half done');
  live.above(() => written.push('line\n'));
  expect(written).toEqual(['line\n']);
});

it('counts the steps of long work and clears its line at the end', () => {
  const written: string[] = [];
  const steps = stepsOn({ write: (text) => written.push(text), isTTY: true }, 'packing', 2);
  steps.next('first');
  steps.next('second');
  steps.end();
  const clear = '\r\u001B[K';
  expect(written).toEqual([
    `${clear}packing  ${'░'.repeat(20)}    0 %  first`,
    `${clear}packing  ${'█'.repeat(10)}${'░'.repeat(10)}   50 %  second`,
    clear,
  ]);
});
