/** A stop while the disk takes nothing: what is lost is named on `drops` by the next start. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Drop } from '../../../../src/kit/outbox/protocol.ts';
import { texts } from '../../../../src/kit/outbox/texts.ts';
import { FaultyDisk } from '../../../support/disk/faulty-disk.ts';
import { openLab } from '../../../support/disk/outbox-lab.ts';
import { StoreLab, work } from '../../../support/disk/store-lab.ts';
import { eventually } from '../../../support/eventually.ts';
import { makeDirectory } from '../../../support/temporary.ts';

describe('Outbox that stops while the disk takes nothing', () => {
  let dir: string;
  let runtime_dir: string;
  const disk = new FaultyDisk();

  beforeEach(async () => {
    dir = await makeDirectory();
    runtime_dir = join(dir, 'run');
    mkdirSync(runtime_dir);
  });
  afterEach(async () => {
    disk.heal();
    await rm(dir, { recursive: true });
  });

  /** Three alarms and two feed messages that no disk took; answers the epoch of their numbers. */
  async function stopWithoutDisk(): Promise<number> {
    const lab = await openLab(dir, { disk, runtime_dir });
    disk.refuse();
    for (let n = 0; n < 3; n += 1) lab.send('alarm', n);
    for (let n = 0; n < 2; n += 1) lab.send('feed', n);
    await lab.outbox.close();
    expect(lab.lines).toContain(texts.not_written);
    disk.heal();
    return lab.outbox.epoch;
  }

  it('names the lost messages at the next start, and once', async () => {
    const epoch = await stopWithoutDisk();
    const { outbox } = await openLab(dir, { disk, runtime_dir });
    expect(outbox.opened.drops).toEqual([
      { epoch, lane: 'alarm', reason: 'memory_full', rows: 3, lo: 1, hi: 3 },
      { epoch, lane: 'feed', reason: 'memory_full', rows: 2, lo: 4, hi: 5 },
    ]);
    expect(existsSync(join(runtime_dir, 'unwritten'))).toBe(false);
    await outbox.close();
  });

  it('names those of several stops once the disk is well', async () => {
    const epochs = [await stopWithoutDisk(), await stopWithoutDisk()];
    // The second start was on a well disk and had taken over what the first stop noted.
    const { outbox } = await openLab(dir, { disk, runtime_dir });
    const alarms = outbox.opened.drops.filter(({ lane }) => lane === 'alarm');
    expect(alarms.map(({ epoch, rows }) => ({ epoch, rows }))).toEqual(
      epochs.map((epoch) => ({ epoch, rows: 3 })),
    );
    await outbox.close();
  });

  it('leaves out what the broker acknowledged', async () => {
    const lab = await openLab(dir, { disk, runtime_dir });
    disk.refuse();
    lab.connect();
    lab.send('alarm', 0);
    const heard = lab.outbox.dispatch.acknowledged.bind(lab.outbox.dispatch);
    await lab.pump(
      (outgoing) => heard(outgoing, { hasSubscribers: true }),
      () => lab.outbox.ledger().delivered === 1,
    );
    lab.send('alarm', 1);
    await eventually('it is unwritten', () => lab.outbox.health().state === 'failing');
    await lab.outbox.close();
    disk.heal();
    const { outbox } = await openLab(dir, { disk, runtime_dir });
    expect(outbox.opened.drops).toMatchObject([{ lane: 'alarm', rows: 1, lo: 2, hi: 2 }]);
    await outbox.close();
  });
});

describe('A note of what a stop could not write', () => {
  const kit_id = '00000000-0000-4000-8000-0000000000aa';

  /** A store with rows 1 to 4 on disk, and a note of 3 to 6: the commit of 3 and 4 was finished after all. */
  function notedLab(of_kit = kit_id): StoreLab {
    const lab = new StoreLab();
    lab.reopen({ runtime_dir: lab.dir, kit_id });
    lab.store.commit(work({ rows: lab.rows('alarm', 1, 4) }));
    const { epoch } = lab.opened;
    const rows = [[epoch, 'alarm', 'memory_full', 4, 3, 6]];
    const drops = [[epoch, 'feed', 'memory_full', 7, 10, 90]];
    const text = JSON.stringify({ epoch, kit_id: of_kit, rows, drops });
    writeFileSync(join(lab.dir, 'unwritten'), `${text}\n{"epoch":${epoch + 1},"rows":[[`);
    return lab;
  }

  const named = (drops: readonly Drop[]): unknown =>
    drops.map(({ lane, rows, lo, hi }) => [lane, rows, lo, hi]);

  it('names only what is not in the buffer file', () => {
    using lab = notedLab();
    expect(named(lab.reopen().drops)).toEqual([
      ['alarm', 2, 5, 6],
      ['feed', 7, 10, 90],
    ]);
  });

  it('counts once when it could not be removed', () => {
    using lab = notedLab();
    const text = readFileSync(join(lab.dir, 'unwritten'));
    lab.reopen();
    writeFileSync(join(lab.dir, 'unwritten'), text);
    expect(named(lab.reopen().drops)).toEqual([
      ['alarm', 2, 5, 6],
      ['feed', 7, 10, 90],
    ]);
  });

  it('of another kit is ignored', () => {
    using lab = notedLab('00000000-0000-4000-8000-0000000000bb');
    expect(lab.reopen().drops).toEqual([]);
  });

  it('is ignored when no stop has written it', () => {
    using lab = new StoreLab();
    lab.reopen({ runtime_dir: lab.dir });
    const endless = [[lab.opened.epoch, 'alarm', 'memory_full', 2 ** 40, 0, 2 ** 40]];
    writeFileSync(join(lab.dir, 'unwritten'), JSON.stringify({ epoch: lab.opened.epoch, rows: endless }));
    expect(lab.reopen().drops).toEqual([]);
  });
});
