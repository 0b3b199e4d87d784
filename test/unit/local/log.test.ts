/** The log: what a machine and what a person reads, and what nobody may read. */
import { expect, test } from 'vitest';
import { createLog, type Level } from '../../../src/platform/log.ts';

function recordedLog(level: Level, { readable = false, drivers = {} } = {}) {
  const lines: string[] = [];
  const log = createLog({ level, readable, drivers, out: { write: (line: string) => lines.push(line) } });
  return { log, lines, parsed: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
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

test('a driver has its own level, which can be changed while it runs', () => {
  const { log, lines } = recordedLog('warn', { drivers: { noisy: 'debug' } });
  const [noisy, quiet] = [log.child({ driver: 'noisy' }), log.child({ driver: 'quiet' })];
  noisy.debug({}, 'one');
  quiet.info({}, 'not this');
  log.setLevel('info', 'quiet');
  quiet.info({}, 'two');
  log.setLevel('error');
  noisy.debug({}, 'three');
  log.warn({}, 'not this');
  expect(lines.map((line) => /"msg":"(.*)"/.exec(line)?.[1])).toEqual(['one', 'two', 'three']);
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

test('a person reads time, level, driver, asset, sentence and facts in one line', () => {
  const { log, lines } = recordedLog('info', { readable: true });
  log
    .child({ driver: 'cameras' })
    .warn({ asset_key: 'onvif:1', err: new Error('timed out') }, 'device is unavailable');
  // oxlint-disable-next-line no-control-regex -- colours of the terminal
  const plain = lines.join('').replaceAll(/\u001B\[\d+m/g, '');
  expect(plain).toMatch(
    /^\d\d:\d\d:\d\d {2}warn {3}cameras onvif:1 {2}device is unavailable {2}err=timed out\n$/,
  );
});
