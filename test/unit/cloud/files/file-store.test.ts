/** What became of files, in the tables of both databases. */
import { expect, it } from 'vitest';
import type { JsonObject } from '../../../../src/contract/json.ts';
import { channels } from '../../../../src/contract/topics.ts';
import { sqlStore } from '../../../../src/cloud/store/sql-store.ts';
import { asset_id, kit_id, samples } from '../../../support/contract-samples.ts';
import { onEachDatabase } from '../each-database.ts';
import { received } from '../story.ts';

const [first, second] = ['4c7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f48', '5c7e2a90-6b1d-4f3a-8e52-9d0c1b2a3f48'];
const now_ms = Date.UTC(2026, 10, 21, 12);

onEachDatabase('files of a kit', (open) => {
  async function lab() {
    const store = sqlStore(await open());
    const report = async (seq: number, id: string, more: JsonObject = {}): Promise<readonly string[]> => {
      const data = { ...samples['fileReport'], id, bytes: 10, ...more };
      const reports = [received({ channel: channels.file(id), seq, data, time_ms: now_ms })];
      const { changes } = await store.commit(reports, now_ms);
      return changes.flatMap((change) => (change.kind === 'file' ? [change.file_id] : []));
    };
    const stateOf = async (file_id: string) => (await store.file({ kit_id, file_id }))?.state;
    return { store, report, stateOf };
  }

  it('are changed by newer reports alone, and shown when that changes something', async () => {
    const { report, stateOf } = await lab();
    expect(await report(5, first)).toEqual([first]);
    expect(await report(6, first, { state: 'requesting' })).toEqual([]);
    expect(await report(8, first, { state: 'dropped', reason: 'too old' })).toEqual([first]);
    await report(7, first);
    expect(await stateOf(first)).toBe('dropped');
  });

  it('are permitted, ordered, stored, counted, listed and expired', async () => {
    const { store, report, stateOf } = await lab();
    await report(1, first);
    await report(2, second, { kind: 'flight_log', asset_id: null, at: '2026-11-22T10:00:00.000Z' });
    const [place, other] = [first, second].map((file_id) => ({ kit_id, file_id }));
    if (!place || !other) throw new Error('two files');
    const permit = { hash: 'hash', until_ms: now_ms + 1, now_ms, bytes: 10, bytes_max: 20 };
    expect(await store.permitFile(place, permit)).toEqual({ kept: 0, promised: 0 });
    await store.fileProgress(place, 5, now_ms);
    expect(await store.orderFile(place, now_ms)).toEqual({ kind: 'file', ...place });
    expect(await store.orderedFiles(kit_id)).toMatchObject([
      { file_id: first, received: 5, token_hash: 'hash', token_ms: now_ms + 1 },
    ]);
    expect(await store.fileBytes()).toBe(0);
    for (const each of [place, other]) await store.fileStored(each, now_ms);
    expect(await store.fileBytes()).toBe(20);
    const idsOf = async (more: object): Promise<string[]> =>
      (await store.files(kit_id, { limit: 10, ...more })).map(({ file_id }) => file_id);
    expect(await idsOf({})).toEqual([second, first]);
    expect(await idsOf({ kinds: ['flight_log'], states: ['stored'] })).toEqual([second]);
    expect(await idsOf({ assets: [asset_id], from_ms: 0, to_ms: now_ms })).toEqual([first]);
    const after = { at_ms: Date.UTC(2026, 10, 22, 10), file_id: second };
    expect(await idsOf({ after })).toEqual([first]);
    expect(await store.expireFiles('flight_log', now_ms + 1)).toEqual([{ kind: 'file', ...other }]);
    expect([await stateOf(second), await stateOf(first)]).toEqual(['deleted', 'stored']);
    expect(await store.oldestFile()).toMatchObject({ file_id: first });
    expect(await store.deletedFiles(0)).toMatchObject([{ file_id: second }]);
    await store.fileRemoved(other);
    expect(await store.deletedFiles(0)).toEqual([]);
    // What was deleted stays so, whatever the kit says.
    await report(3, second);
    expect(await stateOf(second)).toBe('deleted');
  });
});
