/** The figures as people and programs read them. */
import { describe, expect, it } from 'vitest';
import { median } from '../../bench/figure.ts';
import { jsonLine, table } from '../../bench/report.ts';

const measured = {
  bench: 'outbox-throughput',
  figure: {
    figure: 'sync',
    value: 33_000,
    unit: 'msg/s',
    against: 'memory',
    against_value: 30_000,
    target: '>= 0.9 x',
  },
};
const skipped = {
  bench: 'wear',
  figure: {
    figure: 'sync',
    value: null,
    unit: 'bytes',
    against: 'x',
    against_value: null,
    target: '',
    skipped: 'no root',
  },
};

describe('the report of a bench', () => {
  it('has one JSON object a line, with the ratio computed', () => {
    expect(jsonLine(measured)).toBe(
      '{"bench":"outbox-throughput","figure":"sync","value":33000,"unit":"msg/s","against":"memory","against_value":30000,"ratio":1.1}\n',
    );
  });

  it('reports why a test was skipped instead of omitting it', () => {
    expect(JSON.parse(jsonLine(skipped))).toMatchObject({ value: null, ratio: null, skipped: 'no root' });
    expect(table([skipped])).toContain('skipped: no root');
  });

  it('aligns the columns of its table', () => {
    const [head, first, second] = table([measured, skipped]).split('\n');
    expect(first?.indexOf('sync')).toBe(head?.indexOf('figure'));
    expect(second?.indexOf('sync')).toBe(head?.indexOf('figure'));
  });

  it('takes the middle of several rounds, so that one disturbed round does not count', () => {
    expect(median([5, 1, 900])).toBe(5);
    expect(() => median([])).toThrow('nothing was measured');
  });
});
