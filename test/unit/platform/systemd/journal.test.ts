/** Lines for systemd's journal: what a person reads, what a query finds, and a journal that does not listen. */
import { closeSync, fstatSync, openSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { readEntry } from '../../../../src/platform/log/entry.ts';
import {
  isJournal,
  journalDatagram,
  type JournalSource,
  openJournal,
  prefixedLine,
} from '../../../../src/platform/systemd/journal.ts';
import { createLog } from '../../../../src/platform/log/log.ts';
import { texts } from '../../../../src/platform/texts.ts';
import { type FakeSystemd, fakeSystemd, journalFields } from '../../../fakes/services/fake-systemd.ts';
import { makeDirectory } from '../../../support/temporary.ts';
import { testDirectory } from '../../../support/test-directory.ts';

const kit_id = '3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10';
const of_kit: JournalSource = { identifier: 'kit-connector', kit_id };

/** A log that goes to a journal of the test. */
async function journaled(source = of_kit) {
  const journald: FakeSystemd = await fakeSystemd(join(await makeDirectory(), 'journal'));
  const instead: string[] = [];
  const out = await openJournal({
    ...source,
    socket: journald.path,
    instead: (text) => instead.push(text),
  });
  onTestFinished(() => {
    out.close();
    journald.leave();
  });
  const log = createLog({ level: 'debug', out, readable: false });
  return { journald, log, instead, entries: () => journald.read().map(journalFields) };
}

test('a line of the service for many kits has its name, its level, and the kit that it is about', async () => {
  const { log, entries } = await journaled({ identifier: 'kit-connector-service' });
  log.warn({ kit_id }, 'kit is offline');
  log.info({ url: 'http://127.0.0.1:8080' }, 'service started');
  const SYSLOG_IDENTIFIER = 'kit-connector-service';
  expect(entries()).toEqual([
    { MESSAGE: `kit is offline  kit_id=${kit_id}`, PRIORITY: '4', SYSLOG_IDENTIFIER, KIT: kit_id },
    {
      MESSAGE: 'service started  url=http://127.0.0.1:8080',
      PRIORITY: '6',
      SYSLOG_IDENTIFIER,
      FACT_URL: 'http://127.0.0.1:8080',
    },
  ]);
});

test('a line reads like prose and has its driver, asset, kit, task and code as fields', async () => {
  const { log, entries } = await journaled();
  const err = Object.assign(new Error('connect ECONNREFUSED 10.0.0.7:554'), { code: 'ECONNREFUSED' });
  log
    .child({ driver: 'cameras' })
    .warn(
      { asset_key: 'onvif:gate', task_id: 't-1', err, retry_ms: 2_000, port: 554 },
      'device is unavailable',
    );
  const [{ STACK, ...fields } = {}, ...more] = entries();
  expect(more).toEqual([]);
  expect(STACK).toContain('journal.test.ts');
  expect(fields).toEqual({
    MESSAGE:
      'cameras onvif:gate: device is unavailable (connect ECONNREFUSED 10.0.0.7:554), next try in 2 s  port=554',
    PRIORITY: '4',
    SYSLOG_IDENTIFIER: 'kit-connector',
    KIT: kit_id,
    DRIVER: 'cameras',
    ASSET: 'onvif:gate',
    TASK: 't-1',
    CODE: 'ECONNREFUSED',
    FACT_ASSET_KEY: 'onvif:gate',
    FACT_RETRY_MS: '2000',
    FACT_PORT: '554',
  });
});

test('an asset is called by its name, and found by its name and by its key', async () => {
  const { log, journald } = await journaled();
  const drones = log.child({ driver: 'drones' });
  drones.info({ asset_key: 'mavlink:0de3', name: 'Falcon', down_s: 22 }, 'vehicle is online again');
  log.child({ driver: 'cameras' }).warn({ camera: 'Gate' }, 'camera is unavailable');
  log.child({ driver: 'mesh' }).warn({ radio: 'Mast' }, 'radio is unavailable');
  const [drone, camera, radio] = journald.read().map(String);
  expect(drone).toContain('MESSAGE=drones Falcon: vehicle is online again after 22 s\n');
  expect(drone).toContain('\nASSET=mavlink:0de3\n');
  expect(drone).toContain('\nASSET=Falcon\n');
  expect(camera).toContain('MESSAGE=cameras Gate: camera is unavailable\n');
  expect(camera).toContain('\nASSET=Gate\n');
  expect(radio).toContain('MESSAGE=mesh Mast: radio is unavailable\n');
  expect(radio).toContain('\nASSET=Mast\n');
});

test('facts in the sentence are not repeated after it, and stay fields', async () => {
  const { log, entries } = await journaled();
  log.warn(
    { file: '/etc/x.yaml', port: 80, lost: null },
    'no broker is configured: write its address into /etc/x.yaml',
  );
  log.info({ kit_id, broker: 'mqtt://b:1883' }, 'it runs');
  expect(entries()).toMatchObject([
    {
      MESSAGE: 'no broker is configured: write its address into /etc/x.yaml  port=80',
      FACT_FILE: '/etc/x.yaml',
    },
    { MESSAGE: 'it runs  broker=mqtt://b:1883', KIT: kit_id },
  ]);
});

test('every level has its priority, and a crash has its stack in separate lines', async () => {
  const { log, entries } = await journaled();
  for (const level of ['debug', 'info', 'warn', 'error'] as const) log[level]({}, level);
  log.fatal({ err: new Error('one line\nand another') }, 'the program ends');
  const all = entries();
  expect(all.map(({ PRIORITY }) => PRIORITY)).toEqual(['7', '6', '4', '3', '2']);
  expect(all[4]?.['MESSAGE']).toMatch(
    /^the program ends \(one line\\u\{a\}and another\)\nError: one line\n.*journal\.test/s,
  );
});

test('no secret reaches the journal, in no field', async () => {
  const { log, journald } = await journaled();
  const err = new Error('cannot read rtsp://admin:hunter2@10.0.0.7/1?password=hunter2');
  log.error({ err, password: 'hunter2', url: 'http://u:hunter2@h/' }, 'GET /login?token=hunter2 was refused');
  expect(journald.read().join('')).not.toContain('hunter2');
});

test('a blocked journal costs lines but no time, and their number is logged once it accepts lines again', async () => {
  const { log, journald, instead, entries } = await journaled();
  const lines = 3_000;
  for (let at = 0; at < lines; at += 1) log.debug({ at }, 'a flood');
  const kept = entries().length;
  expect(kept).toBeGreaterThan(0);
  expect(kept).toBeLessThan(lines);
  log.debug({}, 'afterwards');
  const [loss, after] = entries().map(({ MESSAGE }) => MESSAGE);
  // A busy machine needs more than a second.
  const seconds = Number(/ (\d+) s /u.exec(loss ?? '')?.[1]);
  expect(loss).toBe(`${texts.journal_slow(lines - kept, seconds)}  lines=${lines - kept}`);
  expect(after).toBe('afterwards');
  expect(instead).toEqual([]);
  expect(journald.read()).toEqual([]);
});

test('where no journal listens, lines go to standard error with their priority', async () => {
  const { log, journald, instead } = await journaled();
  journald.leave();
  log.child({ driver: 'drones' }).error({ reason: 'no answer' }, 'device is unavailable');
  expect(instead).toEqual(['<3>drones: device is unavailable (no answer)\n']);
});

test('a text without end is cut, so that its line arrives', async () => {
  const { log, entries } = await journaled();
  const facts = Object.fromEntries(Array.from({ length: 100 }, (_, at) => [`fact${at}`, 'x'.repeat(20_000)]));
  log.info(facts, 'a device said a lot');
  const [entry] = entries();
  expect(entry?.['MESSAGE']?.slice(0, 19)).toBe('a device said a lot');
  expect(Object.keys(entry ?? {}).length).toBeLessThan(60);
});

test('any line is an entry that can be taken apart again', { tags: 'long' }, () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.dictionary(fc.string(), fc.jsonValue()), (msg, facts) => {
      const entry = readEntry(JSON.stringify({ ...facts, msg, level: 'info' }));
      if (!entry) throw new Error('no entry');
      const fields = journalFields(journalDatagram(entry, of_kit));
      expect(fields).toMatchObject({ KIT: kit_id, PRIORITY: '6' });
      for (const name of Object.keys(fields)) expect(name).toMatch(/^[A-Z][A-Z0-9_]{0,63}$/);
    }),
  );
});

test('a line that is not JSON is written unchanged', () => {
  expect(prefixedLine('not ours\n')).toBe('not ours\n');
});

test('standard error is the journal only if JOURNAL_STREAM names this file', async () => {
  const dir = await testDirectory();
  const fd = openSync(join(dir, 'stream'), 'w');
  const { dev, ino } = fstatSync(fd);
  expect(isJournal(fd, `${dev}:${ino}`)).toBe(true);
  expect(isJournal(fd, `${dev}:${ino + 1}`)).toBe(false);
  expect(isJournal(fd, undefined)).toBe(false);
  closeSync(fd);
  expect(isJournal(fd, `${dev}:${ino}`)).toBe(false);
});
