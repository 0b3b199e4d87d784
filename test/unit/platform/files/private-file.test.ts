/** Databases hold positions, tasks, sessions and hashes of keys: whatever the umask is, only their owner reads them. */
import { chmod, readdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openFile } from '../../../../src/kit/outbox/store/schema.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { testDirectory } from '../../../support/test-directory.ts';

const openers: readonly (readonly [what: string, open: (file: string) => { close: () => unknown }])[] = [
  ['the buffer', (file) => openFile(file, 10_000_000)],
  ['the service', (file) => openSqlite(file)],
  ['the history of a gateway', (file) => openSqlite(':memory:', { keeping: 'memory', history_file: file })],
];

it.each(openers)(
  'the files of %s are of their owner alone, also those of an earlier version',
  async (_, open) => {
    const dir = await testDirectory();
    const [fresh, older] = [join(dir, 'fresh.db'), join(dir, 'older.db')];
    await writeFile(older, '');
    await chmod(older, 0o644);
    for (const file of [fresh, older]) {
      const opened = open(file);
      for (const name of await readdir(dir)) {
        if (file === fresh && name.startsWith('older')) continue;
        expect([name, (await stat(join(dir, name))).mode & 0o777]).toEqual([name, 0o600]);
      }
      await opened.close();
    }
  },
);
