/** The log: what a machine and what a person reads, and what nobody may read. */
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import { durationInWords } from '../../../../src/platform/log/entry.ts';
import {
  of_owner_max,
  of_subject_max,
  repeats_max,
  window_ms,
} from '../../../../src/platform/log/repeats.ts';
import { threadCpu_ms } from '../../../fuzz/engine.ts';
import { withoutSecrets } from '../../../../src/platform/log/secrets.ts';
import { createLog, type Level } from '../../../../src/platform/log/log.ts';
import { texts } from '../../../../src/platform/texts.ts';
import { useFakeTime } from '../../../support/fake-time.ts';

function recordedLog(level: Level, { readable = false, drivers = {} } = {}) {
  const lines: string[] = [];
  const log = createLog({ level, readable, drivers, out: { write: (line: string) => lines.push(line) } });
  const parsed = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  return { log, lines, parsed, sentences: () => parsed().map(({ msg }) => msg) };
}

test('a line is JSON with time, level, facts and sentence', () => {
  const { log, parsed } = recordedLog('info');
  log.child({ driver: 'cameras' }).warn({ asset_key: 'onvif:1', attempts: 3 }, 'device is unavailable');
  const [{ time, ...line } = {}, ...more] = parsed();
  expect(time).toMatch(/^\d{4}-.*Z$/);
  expect(more).toEqual([]);
  expect(line).toEqual({
    level: 'warn',
    driver: 'cameras',
    asset_key: 'onvif:1',
    attempts: 3,
    msg: 'device is unavailable',
  });
});

test('a driver has its own level, and a new configuration applies immediately', () => {
  const { log, sentences } = recordedLog('warn', { drivers: { noisy: 'debug' } });
  const [noisy, quiet] = [log.child({ driver: 'noisy' }), log.child({ driver: 'quiet' })];
  noisy.debug({}, 'one');
  quiet.info({}, 'not this');
  log.configure({ level: 'error', drivers: { quiet: 'info' } });
  quiet.info({}, 'two');
  noisy.warn({}, 'not this');
  log.warn({}, 'not this');
  expect(sentences()).toEqual(['one', 'two']);
});

test('values of keys that sound like secrets are hidden at any depth', () => {
  const { log, lines } = recordedLog('info');
  log.info({ password: 'hunter2', camera: { auth: [{ Token: 'hunter2' }] }, api_key: 'hunter2' }, 'x');
  expect(lines.join('')).not.toContain('hunter2');
  expect(lines.join('').match(/\*\*\*/g)?.length).toBe(3);
});

test('credentials in addresses are hidden in facts, sentences and errors', () => {
  const { log, lines } = recordedLog('info');
  const err = new Error('cannot reach rtsp://admin:hunter2@10.0.0.7/1', {
    cause: new Error('mqtt://kit:hunter2@b refused'),
  });
  log.error({ err: Object.assign(err, { request: { auth: 'hunter2' } }), url: 'http://u:hunter2@h/' }, 'x');
  expect(lines.join('')).not.toContain('hunter2');
  expect(lines.join('')).toContain('rtsp://***@10.0.0.7/1');
});

test.each([
  ['rtsp://admin:p@ss@10.0.0.7/1', 'rtsp://***@10.0.0.7/1'],
  ['rtsp://admin:pa/ss@10.0.0.7/1', 'rtsp://***@10.0.0.7/1'],
  ['http://10.0.0.7:80/stream@2', 'http://10.0.0.7:80/stream@2'],
  ['GET /snap.cgi?user=admin&password=hunter2&channel=1', 'GET /snap.cgi?user=admin&password=***&channel=1'],
  ['{"token": "hunter2", "id": 1}', '{"token": ***, "id": 1}'],
  ["login failed with passwd='two words' at 10.0.0.7", 'login failed with passwd=*** at 10.0.0.7'],
  ['Authorization: Digest username="a", response="hunter2"', 'Authorization: ***'],
  ['refused: Bearer eyJhbGciOi.hunter2', 'refused: Bearer ***'],
  ['<wsse:Password Type="x">hunter2</wsse:Password>', '<wsse:Password Type="x">***</wsse:Password>'],
  ['a.'.repeat(500) + 'rtsp://admin:hunter2@10.0.0.7/1', 'a.'.repeat(500) + 'rtsp://***@10.0.0.7/1'],
  ['x://y:z'.repeat(300) + ' rtsp://a:hun/ter2@h/1', 'x://y:z'.repeat(300) + ' rtsp://***@h/1'],
  [
    '<password '.repeat(300) + '<password>hunter2</password>',
    '<password '.repeat(300) + '<password>***</password>',
  ],
  ['password_file=/etc/kit/mqtt-password', 'password_file=/etc/kit/mqtt-password'],
  ['the password crosses the network unencrypted', 'the password crosses the network unencrypted'],
])('the text %s is written as %s', (said, written) => {
  expect(withoutSecrets(said)).toBe(written);
});

test('hiding credentials costs time in proportion to the text, whatever a device writes', () => {
  const pieces = ['a', 'a://', 'a://b:', 'pass', 'token', 'authorization', '<password ', 'pwd="', "secret='"];
  const texts = pieces.map((piece) => piece.repeat(8_192 / piece.length));
  const costs_ms = [1, 2, 3].map(() => {
    const began_ms = threadCpu_ms();
    for (const text of texts) withoutSecrets(text);
    return threadCpu_ms() - began_ms;
  });
  // 65 ms each were a fault; a few milliseconds are what they cost.
  expect(Math.min(...costs_ms)).toBeLessThan(texts.length * 50);
});

test('facts that JSON cannot carry are written as far as they go, and never stop the program', () => {
  const { log, parsed } = recordedLog('info');
  const circle: Record<string, unknown> = { large: 2n ** 70n };
  circle['itself'] = circle;
  log.info({ name: circle, event: 1n, bytes: new Uint8Array(3) }, 'odd');
  expect(parsed()[0]).toMatchObject({ event: '1', bytes: '3 bytes', name: { large: String(2n ** 70n) } });
});

test('a fact that is named like a part of every line does not take its place', () => {
  const { log, parsed } = recordedLog('info');
  log.info({ level: 4, msg: 'theirs', time: 0 }, 'ours');
  expect(parsed()[0]).toMatchObject({ level: 'info', msg: 'ours', fact_level: 4, fact_msg: 'theirs' });
});

test('a person reads time, level, driver, asset and a sentence with its facts woven in', () => {
  const { log, lines } = recordedLog('info', { readable: true });
  const cameras = log.child({ driver: 'cameras' });
  const facts = { asset_key: 'onvif:1', err: new Error('timed out'), retry_ms: 2_000, up_s: 7_500, port: 80 };
  cameras.warn(facts, 'device is unavailable');
  cameras.info({ down_s: 241, firmware: 'V 2' }, 'device is back');
  const plain = lines.map((line) => stripVTControlCharacters(line).slice('12:00:00'.length));
  expect(plain).toEqual([
    '  warn   cameras onvif:1  device is unavailable (timed out), up for 2 h 5 min before, next try in 2 s  port=80\n',
    '  info   cameras  device is back after 4 min  firmware="V 2"\n',
  ]);
});

test.each([
  [0.44, '0.4 s'],
  [59.6, '60 s'],
  [240, '4 min'],
  [3_600, '1 h'],
  [93_700, '1 d 2 h'],
])('%d seconds are said as %s', (seconds, said) => {
  expect(durationInWords(seconds)).toBe(said);
});

describe('as time goes by', () => {
  useFakeTime();

  test('a temporary level ends after its time, which is logged', () => {
    const { log, lines, sentences } = recordedLog('info');
    const drones = log.child({ driver: 'drones' });
    log.override('drones', 'debug', 60_000);
    expect(log.levels()).toEqual([
      { name: null, level: 'info', until_ms: null },
      { name: 'drones', level: 'debug', until_ms: Date.now() + 60_000 },
    ]);
    vi.advanceTimersByTime(59_000);
    drones.debug({}, 'heard');
    log.child({ driver: 'cameras' }).debug({}, 'not heard');
    vi.advanceTimersByTime(1_000);
    drones.debug({}, 'not heard any more');
    expect(sentences()).toEqual(['heard', texts.level_reset('info')]);
    expect(lines[1]).toContain('"driver":"drones"');
  });

  test('a global level does not change names with their own level, and no level lasts longer than a day', () => {
    const { log, sentences } = recordedLog('info', { drivers: { quiet: 'error' } });
    log.override(null, 'debug', 1e12);
    log.child({ part: 'uplink' }).debug({}, 'heard');
    log.child({ driver: 'quiet' }).warn({}, 'not heard');
    expect(log.levels()[0]?.until_ms).toBe(Date.now() + 86_400_000);
    log.reset(null);
    log.debug({}, 'not heard');
    expect(sentences()).toEqual(['heard']);
  });

  test('repeated lines about one subject are counted, summarised once, and then written again', () => {
    const { log, sentences } = recordedLog('info');
    const cameras = log.child({ driver: 'cameras' });
    for (let at = 0; at < repeats_max + 41; at += 1) cameras.warn({ camera: 'gate', at }, 'no answer');
    cameras.warn({ camera: 'yard' }, 'no answer');
    expect(sentences()).toHaveLength(repeats_max + 1);
    vi.advanceTimersByTime(window_ms);
    expect(sentences().at(-1)).toBe('no answer (suppressed 41 like this in 60 s)');
    cameras.warn({ camera: 'gate' }, 'no answer');
    expect(sentences()).toHaveLength(repeats_max + 3);
    log.close();
  });

  test('suppressed lines are summarised at the end, and debug lines are never suppressed', () => {
    const { log, sentences } = recordedLog('debug');
    for (let at = 0; at < repeats_max + 2; at += 1) log.info({}, 'again');
    for (let at = 0; at < repeats_max + 2; at += 1) log.debug({}, 'detail');
    log.close();
    expect(sentences().filter((said) => said === 'detail')).toHaveLength(repeats_max + 2);
    expect(sentences().at(-1)).toBe('again (suppressed 2 like this in 1 s)');
  });

  test('memory stays bounded for any number of kinds of lines, and no count is lost', () => {
    const { log, sentences } = recordedLog('info');
    for (let at = 0; at < repeats_max + 3; at += 1) log.info({ asset: 'first' }, 'again');
    for (let asset = 0; asset < 500; asset += 1) log.info({ asset: String(asset) }, 'another');
    expect(sentences()).toContain('again (suppressed 3 like this in 1 s)');
    log.close();
  });

  test('a device that changes its text or its name each time does not fill the log', () => {
    const { log, sentences } = recordedLog('info');
    const drones = log.child({ driver: 'drones' });
    for (let n = 0; n < 3_000; n += 1) drones.warn({ asset_key: 'one', text: `PreArm: ${n}` }, 'drone says');
    expect(sentences()).toHaveLength(of_subject_max);
    for (let n = 0; n < 3_000; n += 1) drones.warn({ asset_key: `drone ${n}`, text: `x ${n}` }, 'drone says');
    // One of them tells what was held back of the first, which was pushed out.
    expect(sentences()).toHaveLength(of_owner_max + 1);
    log.child({ driver: 'cameras' }).warn({ asset_key: 'gate' }, 'no answer');
    expect(sentences().at(-1)).toBe('no answer');
    vi.advanceTimersByTime(window_ms);
    expect(sentences()).toContain('drone says (suppressed 2980 like this in 1 s)');
    expect(sentences().at(-1)).toMatch(/^too many lines \(suppressed \d+ like this in 60 s\)$/u);
    log.close();
  });
});
