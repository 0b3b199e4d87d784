/** A message that ended the process while it was read is not read a second time. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SetAside } from '../../../../src/service/ingest/set-aside.ts';
import { recordingLog } from '../../../support/recording-log.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kit-connector-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const poison = Buffer.from('a batch that no reader survives');
const digest = createHash('sha256').update(poison).digest('hex');
const reading = (): string => readFileSync(join(dir, 'reading'), 'utf8');

describe('SetAside', () => {
  it('marks a message while it is read, and takes the mark back when the reading ends or throws', () => {
    const aside = new SetAside(dir, recordingLog());
    expect(aside.guard('a', poison, reading)).toBe(digest);
    expect(reading()).toBe('');
    const broken = (): never => {
      throw new Error('unreadable');
    };
    expect(() => aside.guard('a', poison, broken)).toThrow('unreadable');
    expect(reading()).toBe('');
    expect(aside.guard('a', poison, () => 'read')).toBe('read');
    aside.close();
  });

  it('reads again what was being read when the process was killed, as with a power cut, and forgets the suspicion', () => {
    const log = recordingLog();
    for (let kill = 0; kill < 5; kill += 1) {
      for (let twice = 0; twice < 2; twice += 1) {
        writeFileSync(join(dir, 'reading'), digest);
        new SetAside(dir, log).close();
      }
      const aside = new SetAside(dir, log);
      expect(aside.guard('k1/x/up/batch', poison, () => 'read')).toBe('read');
      aside.close();
    }
    expect(log.at('error')).toEqual([]);
  });

  it('never reads again what was being read at three ends of the process in a row, and keeps it', () => {
    const log = recordingLog();
    for (let end = 0; end < 3; end += 1) {
      writeFileSync(join(dir, 'reading'), digest);
      new SetAside(dir, log).close();
    }
    for (let start = 0; start < 3; start += 1) {
      const aside = new SetAside(dir, log);
      expect(aside.guard('k1/x/up/batch', poison, () => 'read')).toBeUndefined();
      expect(aside.guard('k1/x/up/batch', Buffer.from('another'), () => 'read')).toBe('read');
      aside.close();
    }
    expect(readFileSync(join(dir, `${digest}.batch`))).toEqual(poison);
    expect(log.at('error')[0]).toBe('message crashed the process three times; quarantining it');
    expect(log.at('error').slice(1)).toEqual(
      Array(3).fill('quarantined message received; acknowledged without reading it'),
    );
  });
});
