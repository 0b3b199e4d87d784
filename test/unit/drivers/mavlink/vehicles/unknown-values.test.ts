/** Every value that means "unknown", by field, message and autopilot: the table is made by `test/support/drivers/unknown-values.ts`. */
import { describe, expect, it } from 'vitest';
import { publishedBy, readTable, shownFields } from '../../../../support/drivers/unknown-values.ts';

const rows = readTable();

/** Fields that have no value for unknown. */
const always_known = [
  'gps_raw.fix_type',
  'radio.rx_errors',
  'rc.channels',
  'vibration.clipping.0',
  'vibration.clipping.1',
  'vibration.clipping.2',
];

describe('A value that means unknown', () => {
  it.each(rows)('of $autopilot leaves nothing in the feeds: $message $values ($source)', (row) => {
    const known = publishedBy(row.autopilot, row.message);
    const unknown = publishedBy(row.autopilot, row.message, row.values);
    expect(row.feeds.filter((field) => unknown.has(field))).toEqual([]);
    const invented = [...unknown].filter(([field, value]) => !known.has(field) || !isValue(value));
    expect(invented).toEqual([]);
  });

  it('is in the table for each field that is published', () => {
    const messages = Map.groupBy(rows, ({ message }) => message);
    const covered = new Set(rows.flatMap(({ feeds }) => feeds));
    const published = new Set(
      [...messages].flatMap(([message, [row]]) =>
        row ? [...shownFields(row.autopilot, message).values()].flat() : [],
      ),
    );
    expect(published.size).toBeGreaterThan(45);
    expect([...published].filter((field) => !covered.has(field)).toSorted()).toEqual(always_known);
  });
});

function isValue(value: unknown): boolean {
  return typeof value !== 'number' || Number.isFinite(value);
}
