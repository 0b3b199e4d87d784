/** What the log tells of a link: once each way, with durations, however often the driver tries. */
import { expect, test } from 'vitest';
import { linkLog } from '../../../../drivers/mavlink/link-log.ts';
import { recordingLog } from '../../../support/recording-log.ts';

test('a link that was never open cannot be opened; one that was is lost, and open again', () => {
  const log = recordingLog();
  const tell = linkLog(log, '/dev/ttyACM0');
  tell(false, 'no such file');
  tell(false, 'no such file');
  tell(true, undefined);
  tell(false, 'gone');
  tell(false, 'gone');
  tell(true, undefined);
  expect(log.lines.map(({ level, sentence }) => `${level} ${sentence}`)).toEqual([
    'warn link cannot be opened',
    'debug link is still away',
    'info link is open',
    'warn link is lost',
    'debug link is still away',
    'info link is open again',
  ]);
  expect(log.lines[0]?.facts).toEqual({ link: '/dev/ttyACM0', reason: 'no such file' });
  expect(log.lines[3]?.facts).toMatchObject({ reason: 'gone', up_s: expect.any(Number) as number });
  expect(log.lines[5]?.facts).toMatchObject({ down_s: expect.any(Number) as number });
});

test('a link that opens at once has nothing to add', () => {
  const log = recordingLog();
  linkLog(log, 'udp')(true, undefined);
  expect(log.lines).toEqual([{ level: 'info', facts: { link: 'udp' }, sentence: 'link is open' }]);
});
