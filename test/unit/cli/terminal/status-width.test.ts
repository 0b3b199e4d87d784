/** `status` at the width of a terminal. */
import { expect, it } from 'vitest';
import { texts as doctor_texts } from '../../../../src/cli/doctor/texts.ts';
import { statusLines } from '../../../../src/cli/status/view.ts';
import { texts } from '../../../../src/cli/texts.ts';
import { widthOf } from '../../../../src/cli/terminal/width.ts';
import { statusOf } from '../../kit/local/fake-daemon.ts';

const plain = (_: string, text: string): string => text;
const reason = doctor_texts.disk_full(
  'the buffer takes no more, live messages go on; free some space on /var/lib',
);
const feeds = Object.fromEntries(
  ['gps', 'gps_raw', 'attitude', 'battery', 'sys_status', 'vfr_hud'].map((feed) => [
    feed,
    { age_s: 1, messages: 1, coalesced: 0 },
  ]),
);
const report = statusOf({
  degraded: [reason],
  assets: statusOf().assets.map((asset) => ({ ...asset, name: `カメラ ${asset.name}`, feeds })),
  outbox: { ...statusOf().outbox, drain: { from: 10_000, left: 2_500, per_s: 500, left_s: 5 } },
});

it.each([60, 80, 120])('fits %i columns: rows are cut, sentences are folded and lose no word', (columns) => {
  const lines = statusLines(report, plain, columns);
  expect(lines.filter((line) => widthOf(line) > columns)).toEqual([]);
  const words = lines.join(' ').replaceAll(/\s+/gu, ' ');
  expect(words).toContain(reason);
  expect(words).toContain(texts.messages_left(2_500));
  expect(lines.filter((line) => line.startsWith('  カメラ'))).toHaveLength(3);
});

it('is not cut where there is no terminal', () => {
  expect(statusLines(report, plain).join('\n')).not.toContain('…');
});
