/** A path that names another file than the one that was opened. */
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { watchPlaces } from '../../../../src/platform/files/file-identity.ts';
import { makeDirectory } from '../../../support/temporary.ts';

it('names the paths that were deleted or name another file, and no longer once they name the first one again', async () => {
  const dir = await makeDirectory();
  const [kept, moved] = [join(dir, 'kept'), join(dir, 'moved')];
  for (const path of [kept, moved]) writeFileSync(path, '');
  const displaced = watchPlaces([kept, moved]);
  expect(displaced()).toEqual([]);
  renameSync(moved, `${moved}.old`);
  expect(displaced()).toEqual([moved]);
  writeFileSync(moved, '');
  expect(displaced()).toEqual([moved]);
  renameSync(`${moved}.old`, moved);
  expect(displaced()).toEqual([]);
  rmSync(dir, { recursive: true });
  expect(displaced()).toEqual([kept, moved]);
});

it('takes a number that changes at each look, or an error of the disk, for no evidence', () => {
  let ino = 0n;
  const unstable = watchPlaces(['file'], () => ({ dev: 1n, ino: (ino += 1n) }));
  expect(unstable()).toEqual([]);
  let isFailing = false;
  const failing = watchPlaces(['file'], () => {
    if (isFailing) throw new Error('EIO');
    return { dev: 1n, ino: 1n };
  });
  isFailing = true;
  expect(failing()).toEqual([]);
});
