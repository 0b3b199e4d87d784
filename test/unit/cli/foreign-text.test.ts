/** Whatever the daemon hands on, nothing that moves a cursor or hides text reaches the terminal or the journal. */
import { describe, expect, it } from 'vitest';
import { findingLine } from '../../../src/cli/doctor.ts';
import { complain, painter, say, printJson, table } from '../../../src/cli/terminal/shell.ts';
import { scan } from '../../../src/cli/setup.ts';
import { statusLines } from '../../../src/cli/status/view.ts';
import { TailLines, tailText } from '../../../src/cli/terminal/tail-screen.ts';
import { journalDatagram, prefixedLine } from '../../../src/platform/systemd/journal.ts';
import { printableTexts } from '../../../src/platform/foreign-text.ts';
import { readEntry } from '../../../src/platform/log/entry.ts';
import { createLog } from '../../../src/platform/log/log.ts';
import { corpus, isDeceptive } from '../../support/foreign-text.ts';
import { messageOf, statusOf, time } from '../kit/local/fake-daemon.ts';

const escape = '\u001B';
/** The colours of our own, and the end of each line. */
const ours = new RegExp(`${escape}\\[(?:0|1|22|31|32|33|36|39|90)m|\\n`, 'u');

function terminal() {
  const written: string[] = [];
  const out = { write: (text: string) => written.push(text), isTTY: true, columns: 200 };
  const signal = new AbortController().signal;
  const shell = { env: {}, out, err: out, signal, onHangup: () => undefined, onCrash: () => undefined };
  return { shell, written, text: () => written.join('') };
}

describe.each(Object.entries(corpus))('%s', (_, text) => {
  it('is harmless in what the command line prints', () => {
    const { shell, text: shown } = terminal();
    const paint = painter(shell);
    say(shell, text, paint('good', text), ...table([[text, paint('bad', text)]]));
    complain(shell, text);
    printJson(shell, { text });
    const asset = { id: 'x', key: text, name: text };
    say(shell, tailText(messageOf({ asset, feed: text, data: { text, list: [text] } }), paint));
    const message = messageOf({ asset, feed: text, data: { text, list: [text] } });
    say(shell, new TailLines(paint).line(message, 200) ?? '');
    say(shell, findingLine({ level: 'warn', what: text, finding: text, remedy: text }, paint));
    expect(shown()).toContain('gate');
    expect(isDeceptive(shown(), ours)).toBe(false);
  });

  it('forges no line of status', () => {
    const { shell, text: shown } = terminal();
    const report = statusOf({
      kit_name: text,
      degraded: [text],
      drivers: [{ name: 'a', driver: 'b', state: 'down', since: time, reason: text, facts: { path: text } }],
      assets: [
        {
          id: 'x',
          key: text,
          name: text,
          type: 'camera',
          status: 'offline',
          reason: text,
          last_seen_at: time,
          feeds: {},
        },
      ],
    });
    const harmless = statusOf({ ...report, kit_name: 'x', degraded: ['x'] });
    const lines = table([[text], ['x']]);
    expect(lines).toHaveLength(2);
    expect(lines.join('')).not.toContain('\n');
    say(shell, ...statusLines(printableTexts(report), painter(shell)));
    expect(isDeceptive(shown(), ours)).toBe(false);
    expect(statusLines(printableTexts(report), painter(shell))).toHaveLength(
      statusLines(harmless, painter(shell)).length,
    );
  });

  it('adds no line to the configuration that setup writes', async () => {
    const suggest = async () => [{ what: text, options: {}, complete: false }];
    const [found] = await scan([{ name: 'onvif', suggest }], 10, new AbortController().signal);
    expect(found?.what).toContain('gate');
    expect(isDeceptive(found?.what ?? '')).toBe(false);
  });

  it('is harmless in the log: on a terminal, as JSON, and in the journal', () => {
    for (const readable of [true, false]) {
      const lines: string[] = [];
      const out = { write: (line: string) => void lines.push(line) };
      const log = createLog({ level: 'info', drivers: {}, out, readable });
      log
        .child({ driver: 'cameras' })
        .warn({ camera: text, reason: text, text, err: new Error(text) }, 'no answer');
      log.close();
      const [line = ''] = lines;
      expect(line).toContain('gate');
      expect(line.match(/\n/gu)).toHaveLength(1);
      expect(isDeceptive(line, ours)).toBe(false);
      for (const kept of log.recent()) expect(isDeceptive(kept)).toBe(false);
      if (readable) continue;
      const entry = readEntry(line);
      const datagram = entry ? journalDatagram(entry, { identifier: 'kit' }).toString('latin1') : '';
      const [message = ''] = datagram.split('\n');
      expect(message).toContain('gate');
      expect(isDeceptive(Buffer.from(message, 'latin1').toString())).toBe(false);
      expect(isDeceptive(prefixedLine(line), /\n$/u)).toBe(false);
    }
  });
});

it('keeps the lines of a stack in the journal', () => {
  const lines: string[] = [];
  const log = createLog({
    level: 'info',
    drivers: {},
    out: { write: (line) => void lines.push(line) },
    readable: false,
  });
  log.fatal({ err: new Error('broken') }, 'internal error');
  const entry = readEntry(lines[0] ?? '');
  expect(entry && journalDatagram(entry, { identifier: 'kit' }).toString()).toMatch(/\n {4}at /u);
});
