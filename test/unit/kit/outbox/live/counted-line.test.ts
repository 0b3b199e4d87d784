/** A log line that is due for each of many messages. */
import { beforeEach, describe, expect, it } from 'vitest';
import { CountedLine } from '../../../../../src/kit/outbox/live/dispatch.ts';

describe('CountedLine', () => {
  let now_ms: number;
  let lines: object[];
  let line: CountedLine;
  beforeEach(() => {
    now_ms = 0;
    lines = [];
    line = new CountedLine(
      (facts) => void lines.push(facts),
      () => now_ms,
    );
  });

  it('writes the first at once, and those of the next minute as one line with the last facts', () => {
    line.write({ code: 1 });
    line.write({ code: 2 });
    line.write({ code: 3 });
    line.tick();
    expect(lines).toEqual([{ code: 1, messages: 1 }]);
    now_ms = 60_000;
    line.tick();
    expect(lines.at(-1)).toEqual({ code: 3, messages: 2 });
  });

  it('counts those of the pause in the line that ends it', () => {
    line.write({ code: 1 });
    line.write({ code: 2 });
    now_ms = 60_000;
    line.write({ code: 3 });
    expect(lines).toEqual([
      { code: 1, messages: 1 },
      { code: 3, messages: 2 },
    ]);
  });

  it('writes nothing after a pause in which nothing was due', () => {
    line.write({ code: 1 });
    now_ms = 600_000;
    line.tick();
    expect(lines).toHaveLength(1);
  });
});
