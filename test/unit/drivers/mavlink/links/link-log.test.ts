/** Log lines of a link: one for each change of its state, with durations. */
import { describe, expect, it } from 'vitest';
import { linkLog } from '../../../../../drivers/mavlink/links/link-log.ts';
import { texts } from '../../../../../drivers/mavlink/links/texts.ts';
import { recordingLog } from '../../../../support/recording-log.ts';

describe('Link log', () => {
  it('logs each failed opening, opening, loss and restoration of a link once at info or warn', () => {
    const log = recordingLog();
    const report = linkLog(log, '/dev/ttyACM0');
    report(false, 'no such file');
    report(false, 'no such file');
    report(true, undefined);
    report(false, 'gone');
    report(false, 'gone');
    report(true, undefined);
    expect(log.lines.map(({ level, sentence }) => `${level} ${sentence}`)).toEqual([
      `warn ${texts.open_failed}`,
      `debug ${texts.still_down}`,
      `info ${texts.opened}`,
      `warn ${texts.lost}`,
      `debug ${texts.still_down}`,
      `info ${texts.reopened}`,
    ]);
    expect(log.lines[0]?.facts).toEqual({ link: '/dev/ttyACM0', reason: 'no such file' });
    expect(log.lines[3]?.facts).toMatchObject({ reason: 'gone', up_s: expect.any(Number) as number });
    expect(log.lines[5]?.facts).toMatchObject({ down_s: expect.any(Number) as number });
  });

  it('logs no duration when a link opens at the first attempt', () => {
    const log = recordingLog();
    linkLog(log, 'udp')(true, undefined);
    expect(log.lines).toEqual([{ level: 'info', facts: { link: 'udp' }, sentence: texts.opened }]);
  });
});
