/** What a handler may put into the reports of its task: progress at a pace, a result and sentences within limits. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { notSent } from '../../../../src/platform/errors.ts';
import { faults_named_max, result_chars_max, sentence_chars_max } from '../../../../src/kit/tasks/limits.ts';
import { pacedProgress, type Progress } from '../../../../src/kit/tasks/task-recorder.ts';
import { readResult, reportable } from '../../../../src/kit/tasks/result.ts';
import {
  bounded,
  errorOf,
  faultSentence,
  thrownSentence,
  unrecordedNote,
} from '../../../../src/kit/tasks/sentences.ts';

describe('The progress of a task', () => {
  const reported = (report: (paced: ReturnType<typeof pacedProgress>) => void): readonly Progress[] => {
    const gone = new AbortController();
    const all: Progress[] = [];
    report(pacedProgress(gone.signal, (progress) => all.push(progress)));
    gone.abort();
    return all;
  };

  it.each([
    [-5, 0],
    [140, 100],
    [Number.NaN, null],
    [undefined, null],
  ])('has a percentage of %s as %s', (pct, shown) => {
    expect(reported((report) => report('climbing', pct))).toEqual([{ message: 'climbing', pct: shown }]);
  });

  it('is cut to the length that an operator can read', () => {
    const [only] = reported((report) => report('x'.repeat(sentence_chars_max + 10)));
    expect(only?.message).toHaveLength(sentence_chars_max);
  });
});

describe('The result of a task', () => {
  it('is reported as it is when it is a JSON object, and empty when there is none', () => {
    expect(reportable({ alt_m: 12.5, list: [1, null] })).toEqual({ alt_m: 12.5, list: [1, null] });
    expect(reportable(undefined)).toEqual({});
  });

  it('is marked as truncated when it is too large, circular, or no object', () => {
    const circle: Record<string, unknown> = {};
    circle['itself'] = circle;
    for (const result of [{ text: 'x'.repeat(result_chars_max) }, circle, [1, 2], 'text', 10n])
      expect(reportable(result)).toMatchObject({ truncated: true });
  });

  it('is read back from the journal only when it is a JSON object', () => {
    expect(readResult('{"a":1}')).toEqual({ a: 1 });
    for (const text of ['', '[1]', '{"a":', 'null', '7']) expect(readResult(text)).toBeUndefined();
  });
});

describe('The sentences of a failed task', () => {
  it('name the first faults of a payload with their keys, and count the others', () => {
    const shape = z.object({ a: z.number(), b: z.number(), c: z.number(), d: z.number(), e: z.number() });
    const { error } = shape.safeParse({});
    if (!error) throw new Error('the payload was accepted');
    const sentence = faultSentence(error, 'payload');
    expect(sentence.match(/payload\.[a-e]: /gu)).toHaveLength(faults_named_max);
    expect(sentence).toContain('and 2 more');
  });

  it('never leave an operator without a reason', () => {
    expect(thrownSentence(new Error(''))).not.toBe('');
    expect(thrownSentence(undefined)).not.toBe('');
  });

  it('stay one line within the limit, whatever a device has written', () => {
    const line = bounded('a\nb\u0007c');
    expect([line.includes('\n'), line.includes('\u0007')]).toEqual([false, false]);
    expect(bounded('x'.repeat(5_000))).toHaveLength(sentence_chars_max);
  });

  it('say that an end which cannot be recorded is not final, with its reason once', () => {
    const state = { status: 'failed', revision: 2, result: { error: notSent('disk write failed') } } as const;
    const note = unrecordedNote(state, 'disk write failed');
    expect(note.match(/disk write failed/gu)).toHaveLength(1);
    expect(errorOf(state)).toBe(notSent('disk write failed'));
    expect(errorOf({ status: 'completed', revision: 2, result: { error: 'of the device' } })).toBe('');
  });
});
