/** A message that ended the process while it was read is not read a second time. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';

import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { channels, upTopic } from '../../../../src/contract/topics.ts';
import { SetAside } from '../../../../src/service/ingest/set-aside.ts';
import { tryReading } from '../../../../src/service/ingest/trial.ts';
import { asset_id, kit_id } from '../../../support/contract-samples.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { texts as serviceTexts } from '../../../../src/service/texts.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kit-connector-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** 7.5 kB within all limits, whose texts take more memory than a reader with a small heap has. */
const rows = Array.from({ length: 30 }, () => 'x'.repeat(250_000));
const head = { e: 1, ch: channels.feed(asset_id, 'gps'), seq: rows.map(() => 1), t: rows.map(() => 1) };
const poison = deflateSync(JSON.stringify({ v: 1, historical: false, groups: [{ ...head, v: rows }] }));
const topic = upTopic(kit_id, channels.batch);
const small = { heap_mb: 20, time_ms: 60_000 };
const digest = createHash('sha256').update(poison).digest('hex');
const reading = (): string => readFileSync(join(dir, 'reading'), 'utf8');

describe('SetAside', () => {
  it('marks a message while it is read, and takes the mark back when the reading ends or throws', async () => {
    const aside = new SetAside(dir, recordingLog());
    expect(await aside.guard('a', poison, reading)).toBe(digest);
    expect(reading()).toBe('');
    const broken = (): never => {
      throw new Error('unreadable');
    };
    await expect(aside.guard('a', poison, broken)).rejects.toThrow('unreadable');
    expect(reading()).toBe('');
    expect(await aside.guard('a', poison, () => 'read')).toBe('read');
    aside.close();
  });

  it('marks a message also after its folder was deleted: else no crash would ever be counted', async () => {
    const aside = new SetAside(dir, recordingLog());
    rmSync(dir, { recursive: true });
    expect(await aside.guard('a', poison, reading)).toBe(digest);
    aside.close();
  });

  it(
    'reads again what was being read when the process was killed, as with a power cut, and forgets the suspicion',
    { timeout: 120_000 },
    async () => {
      const log = recordingLog();
      for (let kill = 0; kill < 5; kill += 1) {
        for (let twice = 0; twice < 2; twice += 1) {
          writeFileSync(join(dir, 'reading'), digest);
          new SetAside(dir, log).close();
        }
        const aside = new SetAside(dir, log);
        expect(await aside.guard('k1/x/up/batch', poison, () => 'read')).toBe('read');
        aside.close();
      }
      expect(log.at('error')).toEqual([]);
    },
  );

  it('does not condemn a message because the process was killed again and again during its trial', async () => {
    const log = recordingLog();
    writeFileSync(join(dir, 'reading'), digest);
    for (let kill = 0; kill < 5; kill += 1) {
      const aside = new SetAside(dir, log, async () => new Promise(() => undefined));
      void aside.guard(topic, poison, () => 'read');
    }
    const aside = new SetAside(dir, log, async () => undefined);
    expect(await aside.guard(topic, poison, () => 'read')).toBe('read');
    expect(log.at('error')).toEqual([]);
    aside.close();
  });

  it('never reads again what was being read at three ends of the process in a row, and keeps it', async () => {
    const log = recordingLog();
    for (let end = 0; end < 3; end += 1) {
      writeFileSync(join(dir, 'reading'), digest);
      new SetAside(dir, log).close();
    }
    for (let start = 0; start < 3; start += 1) {
      const aside = new SetAside(dir, log);
      expect(await aside.guard('k1/x/up/batch', poison, () => 'read')).toBeUndefined();
      expect(await aside.guard('k1/x/up/batch', Buffer.from('another'), () => 'read')).toBe('read');
      aside.close();
    }
    expect(readFileSync(join(dir, `${digest}.batch`))).toEqual(poison);
    expect(log.at('error')[0]).toBe(serviceTexts.log_crashed_process);
    expect(log.at('error').slice(1)).toEqual(Array(3).fill(serviceTexts.log_quarantined_again));
  });

  it(
    'never reads in this process what crashed one process and then the reader of its trial, and names it',
    { timeout: 60_000 },
    async () => {
      writeFileSync(join(dir, 'reading'), digest);
      const log = recordingLog();
      let reads = 0;
      const trial: typeof tryReading = async (said_topic, payload) => tryReading(said_topic, payload, small);
      const aside = new SetAside(dir, log, trial);
      const read = (): number => (reads += 1);
      expect(await aside.guard(topic, poison, read)).toBeUndefined();
      expect(readFileSync(join(dir, `${digest}.batch`))).toEqual(poison);
      aside.close();
      const next = new SetAside(dir, log, trial);
      expect(await next.guard(topic, poison, read)).toBeUndefined();
      expect(reads).toBe(0);
      next.close();
      expect(log.at('error')).toEqual([
        serviceTexts.log_crashed_reader,
        serviceTexts.log_quarantined_again,
        serviceTexts.log_quarantined_again,
      ]);
    },
  );

  it('leaves no mark when the service stops during a trial', async () => {
    writeFileSync(join(dir, 'reading'), digest);
    const trial = Promise.withResolvers<undefined>();
    const aside = new SetAside(dir, recordingLog(), async () => trial.promise);
    const guarded = aside.guard('a', poison, () => 'read');
    aside.close();
    trial.resolve(undefined);
    expect(await guarded).toBe('read');
    expect(reading()).toBe('');
  });
});

describe('tryReading', () => {
  it('survives what the limits of the contract allow', { timeout: 60_000 }, async () => {
    expect(await tryReading(topic, poison)).toBeUndefined();
  });

  it.each([
    ['takes too much memory', small, /memory limit/u],
    ['takes too long', { heap_mb: 64, time_ms: 1 }, /did not finish within 1 ms/u],
  ])('names a message that %s', { timeout: 60_000 }, async (_, limits, reason) => {
    expect(await tryReading(topic, poison, limits)).toMatch(reason);
  });
});
