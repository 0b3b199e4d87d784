/** Files that drivers hand over: announced when they are on disk, and what the cloud asks for. */
import { createHash } from 'node:crypto';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { gateway } from '../../../../drivers/gateway/gateway.ts';
import { thumbnail_bytes_max } from '../../../../src/contract/files.ts';
import { assetId } from '../../../../src/contract/identity.ts';
import { KitFiles, type KitFilesOptions } from '../../../../src/kit/files/kit-files.ts';
import { texts } from '../../../../src/kit/files/texts.ts';
import { drone } from '../../../fakes/scripted-driver.ts';
import { startCommand } from '../../../support/drivers/started-command.ts';
import { eventually } from '../../../support/eventually.ts';
import { fakeMachine } from '../../../support/gateway/fake-machine.ts';
import { kit_id } from '../../../support/kit/hub-lab.ts';
import { testHub } from '../../../support/kit/test-hub.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { recordingOutbox } from '../../../support/recording-outbox.ts';
import { testDirectory } from '../../../support/test-directory.ts';

async function lab(dir?: string, more: Partial<KitFilesOptions> = {}) {
  const place = dir ?? (await testDirectory());
  const outbox = recordingOutbox();
  const files = new KitFiles({
    kit_id,
    dir: join(place, 'files'),
    limits: () => ({ bytes_max: 1_000, age_max_ms: 1_000_000, free_bytes_min: 0 }),
    outbox: { ...outbox, committed: async () => undefined },
    now: () => 5_000,
    log: recordingLog(),
    signal: AbortSignal.abort(),
    ...more,
  });
  await files.open();
  return {
    files,
    outbox,
    dir: place,
    isAnnounced: () => files.store.files.every(({ announced }) => announced),
  };
}

const still = {
  kind: 'still',
  asset_key: 'cam-1',
  name: 'gate\u202E.jpg',
  content_type: 'image/jpeg',
  at_ms: 1_764_000_000_000,
  content: { bytes: Buffer.from('jpeg') },
} as const;

describe('A support bundle', () => {
  const ordered = AbortSignal.timeout(60_000);

  it('is made where no other file is, announced, and nothing of it is left beside the files', async () => {
    const paths: string[] = [];
    const { files, outbox, dir } = await lab(undefined, {
      writeBundle: async (path) => {
        paths.push(path);
        await writeFile(path, 'an archive', { flag: 'wx' });
      },
    });
    const ids = [await files.addBundle?.(ordered), await files.addBundle?.(ordered)];
    expect(ids[0]).not.toBe(ids[1]);
    await eventually('both are announced', () => outbox.drafts.length === 2);
    expect(outbox.drafts[0]?.data).toMatchObject({
      id: ids[0],
      kind: 'support_bundle',
      asset_id: null,
      content_type: 'application/gzip',
      name: 'support 1970-01-01-00-00-05.tar.gz',
      state: 'stored',
    });
    expect(new Set(await readdir(join(dir, 'files')))).toEqual(new Set([...ids, 'journal']));
    expect(paths).toHaveLength(2);
  });

  it('that cannot be made fails the command with the reason, and leaves nothing', async () => {
    const { files, dir } = await lab(undefined, {
      writeBundle: async (path) => {
        await writeFile(path, 'half of');
        throw new Error('the disk is full');
      },
    });
    await expect(files.addBundle?.(ordered)).rejects.toThrow(texts.bundle_failed('the disk is full'));
    expect(await readdir(join(dir, 'files'))).toEqual(['journal']);
  });

  it('is ordered by a command of the gateway, where the configuration offers it', async () => {
    const machine = await fakeMachine();
    const { files } = await lab(undefined, { writeBundle: async (path) => writeFile(path, 'an archive') });
    const hub = testHub({ files });
    const { roots } = machine;
    void hub.run(gateway, 'gateway', { options: { roots, commands: ['support_bundle'] } });
    await eventually('the gateway is announced', () => hub.hub.assets().length === 1);
    const gateway_id = hub.hub.assets()[0]?.id ?? '';
    expect(hub.hub.commandsOf(gateway_id).map(({ name }) => name)).toEqual(['support_bundle']);
    const found = hub.hub.findCommand(gateway_id, 'support_bundle');
    const done = await startCommand('command' in found ? found.command : undefined).done;
    expect(done).toEqual({ file_id: files.store.files[0]?.id });
    await machine.remove();
  });
});

describe('Files of a kit', () => {
  it('come from a driver through its host, and are announced with hash and thumbnail', async () => {
    const { files, outbox } = await lab();
    const host = await testHub({ files }).hostOf();
    host.announce(drone('cam-1'));
    const id = await host.files.add({ ...still, thumbnail: Buffer.from('small') });
    const { channel, lane, data } = await outbox.until((draft) => draft.channel.startsWith('file/'));
    expect(channel).toBe(`file/${id}`);
    expect(lane).toBe('alarm');
    expect(data).toEqual({
      id,
      kind: 'still',
      asset_id: assetId(kit_id, 'cam-1'),
      name: 'gate.jpg',
      content_type: 'image/jpeg',
      at: '2025-11-24T16:00:00.000Z',
      bytes: 4,
      sha256: createHash('sha256').update('jpeg').digest('hex'),
      thumbnail: Buffer.from('small').toString('base64'),
      state: 'stored',
      reason: null,
    });
  });

  it('are announced again after a start only where the announcement may be lost', async () => {
    const { files, dir, isAnnounced } = await lab();
    await files.add({ ...still, thumbnail: Buffer.alloc(thumbnail_bytes_max + 1) });
    await eventually('announced', isAnnounced);
    const later = await lab(dir);
    expect(later.outbox.drafts).toEqual([]);
    later.files.announceAll();
    expect(later.outbox.drafts).toHaveLength(1);
  });

  it.each([
    ['nothing, with its hash', 'same', 'uploaded'],
    ['nothing, with another hash', '0'.repeat(64), 'kept'],
    ['deletion', undefined, 'dropped'],
  ])('end as the cloud asks: %s', async (_, hash, outcome) => {
    const { files, outbox } = await lab();
    const id = await files.add(still);
    const sha256 = hash === 'same' ? (files.store.get(id)?.sha256 ?? '') : hash;
    await files.answer(
      id,
      sha256 === undefined ? { want: 'deletion', reason: '' } : { want: 'nothing', sha256 },
    );
    const { accepted, uploaded, dropped, kept } = files.view();
    expect([accepted, uploaded, dropped, kept.files]).toEqual([
      1,
      outcome === 'uploaded' ? 1 : 0,
      outcome === 'dropped' ? { unwanted: 1 } : {},
      outcome === 'kept' ? 1 : 0,
    ]);
    const { dropped: words } = texts;
    const reports = outbox.drafts.flatMap(({ data }) =>
      data?.['state'] === 'dropped' ? [data['reason']] : [],
    );
    expect(reports).toEqual(outcome === 'dropped' ? [words.unwanted] : []);
  });

  it('are marked when the cloud orders them, also by an order that comes twice', async () => {
    const { files } = await lab();
    const id = await files.add(still);
    await files.answer(id, { want: 'order' });
    await files.answer(id, { want: 'order' });
    await files.answer('unknown', { want: 'order' });
    expect(files.view().kept).toEqual({ files: 1, bytes: 4, ordered: 1 });
  });
});
