/** `kit-connector history`: an export replaces no file that is there, unless asked to. */
import { readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { runProgram } from '../../../src/cli/program.ts';
import { texts } from '../../../src/cli/texts.ts';
import { openSqlite } from '../../../src/cloud/sql/sqlite.ts';
import { sqlStore } from '../../../src/cloud/store/sql-store.ts';
import { kit_id } from '../../support/contract-samples.ts';
import { makeDirectory } from '../../support/temporary.ts';
import { gps, received, start_ms } from '../cloud/story.ts';
import { recordedShell } from './shell-of-test.ts';

it('does not overwrite a file with an export without --force, and leaves nothing beside it', async () => {
  const dir = await makeDirectory();
  const [database, file] = [join(dir, 'service.db'), join(dir, 'backup.ndjson')];
  const store = sqlStore(openSqlite(database));
  await store.commit([received(gps(1, 47.1))], start_ms);
  await store.close();
  const run = async (...words: readonly string[]) => {
    const shell = recordedShell();
    const words_all = ['history', 'export', file, ...words, '--database', database];
    return { code: await runProgram(words_all, shell), out: shell.stdout(), err: shell.stderr().trim() };
  };
  await writeFile(file, 'an older backup');
  expect(await run()).toEqual({ code: 1, out: '', err: texts.export_exists(file) });
  expect(await readFile(file, 'utf8')).toBe('an older backup');
  expect((await readdir(dir)).filter((name) => name.startsWith('backup'))).toEqual(['backup.ndjson']);
  expect(await run('--force')).toMatchObject({ code: 0, err: '' });
  expect(await readFile(file, 'utf8')).toContain(kit_id);
});

it('follows no link and fills no file that was laid where it writes, and lets only its owner read the export', async () => {
  const dir = await makeDirectory();
  const [database, file, other] = [join(dir, 'service.db'), join(dir, 'backup.ndjson'), join(dir, 'other')];
  const store = sqlStore(openSqlite(database));
  await store.commit([received(gps(1, 47.1))], start_ms);
  await store.close();
  await writeFile(other, 'of somebody else');
  await symlink(other, `${file}.part`);
  const shell = recordedShell();
  expect(await runProgram(['history', 'export', file, '--database', database], shell)).toBe(0);
  expect(await readFile(other, 'utf8')).toBe('of somebody else');
  expect((await stat(file)).mode & 0o777).toBe(0o600);
});
