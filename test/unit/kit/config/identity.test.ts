/** The id of a kit whose configuration names none, and the record of the machine that its state was written on. */
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { settleIdentity } from '../../../../src/cli/kit-identity.ts';
import { copyWarning, machineFacts, type MachineFacts } from '../../../../src/kit/config/identity.ts';
import { ConfigInvalid } from '../../../../src/platform/errors.ts';
import { testDirectory } from '../../../support/test-directory.ts';
import { faultsOf, readText } from './lab.ts';

const machine = { isBooted: true, 'machine-id': 'a'.repeat(32), board: undefined } satisfies MachineFacts;
const image: MachineFacts = { isBooted: false, 'machine-id': undefined, board: undefined };
const uuid = /^[0-9a-f-]{36}$/u;

/** The first start of a kit with this `config.yaml` below `dir`, as the daemon does it. */
async function start(dir: string, facts: MachineFacts, hasOwnId = false): Promise<string> {
  const state_dir = join(dir, 'state');
  await settleIdentity({ file: join(dir, 'config.yaml'), state_dir, hasOwnId }, facts);
  return (await readText(dir, `state_dir: ${state_dir}\n`)).kit_id;
}

it('makes the id at the first start and keeps it at every later one', async () => {
  const dir = await testDirectory();
  const before = await readText(dir, `state_dir: ${join(dir, 'state')}\n`);
  expect([before.kit_id, before.warnings.join()]).toEqual([
    '',
    expect.stringContaining('the kit has no id yet'),
  ]);
  const made = await start(dir, machine);
  expect(made).toMatch(uuid);
  expect(await start(dir, machine)).toBe(made);
  expect((await stat(join(dir, 'state/kit-id'))).mode & 0o777).toBe(0o640);
  expect((await readdir(join(dir, 'state'))).toSorted()).toEqual(['kit-id', 'kit-id.machine']);
});

it('gives two copies of an image that was never booted two ids', async () => {
  const dir = await testDirectory();
  for (const name of ['one', 'two']) await mkdir(join(dir, name));
  const ids = [await start(join(dir, 'one'), machine), await start(join(dir, 'two'), machine)];
  expect(new Set(ids).size).toBe(2);
});

it('makes no id in an image that is being built', async () => {
  const dir = await testDirectory();
  const faults = await faultsOf(dir, start(dir, image));
  expect(faults.join()).toContain(
    'config.yaml kit_id: not set, and none is created because this system has no /etc/machine-id',
  );
  expect(await readdir(dir)).toEqual([]);
});

it('uses the id of the configuration and makes none beside it', async () => {
  const dir = await testDirectory();
  await mkdir(join(dir, 'state'));
  await start(dir, machine, true);
  expect(await readdir(join(dir, 'state'))).toEqual(['kit-id.machine']);
  const text = `kit_id: 3F0C1F6E-52a4-4c0e-9d6b-1f2a7c9e4b10\nstate_dir: ${join(dir, 'state')}\n`;
  expect((await readText(dir, text)).kit_id).toBe('3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10');
});

it('refuses a file of the id that is damaged instead of making another id', async () => {
  const dir = await testDirectory();
  await mkdir(join(dir, 'state'));
  await writeFile(join(dir, 'state/kit-id'), 'half a UU');
  await expect(start(dir, machine)).rejects.toThrow('it holds no UUID');
  const faults = await faultsOf(dir, readText(dir, `state_dir: ${join(dir, 'state')}\n`));
  expect(faults.join()).toMatch(/kit_id: is not set, and state\/kit-id cannot be read \(it holds no UUID\)/u);
});

it('reports a state that was copied from another machine, and only that', async () => {
  const dir = await testDirectory();
  const files = {
    machine_id: join(dir, 'machine-id'),
    board: join(dir, 'serial-number'),
    mounts: join(dir, 'mountinfo'),
  };
  const become = async (id: string, board: string, mounts = ''): Promise<string | undefined> => {
    await writeFile(files.machine_id, id);
    await writeFile(files.board, board);
    await writeFile(files.mounts, mounts);
    return copyWarning(join(dir, 'state'), files);
  };
  const first = 'a'.repeat(32);
  await become(`${first}\n`, '10000000aaaaaaaa\0');
  await start(dir, await machineFacts(files));
  expect(await readFile(join(dir, 'state/kit-id.machine'), 'utf8')).not.toContain(first);
  expect(await become(`${first}\n`, '10000000aaaaaaaa\0')).toBeUndefined();
  expect(await become(`${first}\n`, '')).toBeUndefined();
  expect(await become('', '')).toBeUndefined();
  expect(await become(`${'b'.repeat(32)}\n`, '10000000aaaaaaaa\0')).toContain(
    'was written on another machine',
  );
  // The whole disk was copied, its machine id with it.
  expect(await become(`${first}\n`, '10000000bbbbbbbb\0')).toContain(
    'may share one kit_id; if this is a copy',
  );
  // Until systemd has written it down, the id is one of this boot.
  const mounted = `36 35 0:32 /machine-id ${files.machine_id} ro - tmpfs tmpfs rw\n`;
  expect(await become(`${'b'.repeat(32)}\n`, '', mounted)).toBeUndefined();
});

it('refuses to start on a disk that cannot store the id, with the reason', async () => {
  const dir = await testDirectory();
  await writeFile(join(dir, 'state'), 'a file');
  await expect(start(dir, machine)).rejects.toThrow(/cannot write .*kit-id \(not a directory\)/u);
  await expect(start(dir, image)).rejects.toThrow(ConfigInvalid);
});
