/** API keys from the command line: shown once, kept as a hash, taken back. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startChild } from '../../support/child.ts';
import { command_file } from '../../support/kit/kit.ts';
import { withDirectory } from '../../support/temporary.ts';

const task_kit = '1f8c1a52-6d1e-4b7a-9c3d-1f2e3d4c5b6a';
const kit_id = '0f8c1a52-6d1e-4b7a-9c3d-1f2e3d4c5b6a';

it('a key is made for some kits and some purposes, listed without its secret, and taken back', async () => {
  await withDirectory(async (dir) => {
    const database = join(dir, 'service.db');
    const run = async (...words: readonly string[]) =>
      startChild([command_file, 'service', 'key', ...words, '--database', database]).ended;
    const { stdout: key } = await run(
      'add',
      'ops room',
      '--kit',
      kit_id.toUpperCase(),
      '--scope',
      'read',
      '--days',
      '30',
    );
    expect(key).toMatch(/^kc_[0-9a-f]{12}_[\w-]{32}\n$/u);
    const [, id = '', secret = ''] = /^kc_([0-9a-f]{12})_(.*)\n$/u.exec(key) ?? [];
    const listed = await run('list', '--json');
    expect(JSON.parse(listed.stdout)).toMatchObject([
      { id, label: 'ops room', scopes: ['read'], kits: [kit_id], used_at: null },
    ]);
    expect(listed.stdout).not.toContain(secret);
    expect(readFileSync(database).includes(secret)).toBe(false);
    const more = ['--add-kit', task_kit, '--scope', 'read', '--scope', 'alarms', '--label', 'night shift'];
    const changed = await run('change', key.trim(), ...more, '--json');
    expect(JSON.parse(changed.stdout)).toMatchObject({
      id,
      label: 'night shift',
      scopes: ['read', 'alarms'],
      kits: [kit_id, task_kit],
    });
    expect((await run('change', id, '--all-kits')).code).toBe(0);
    expect((await run('change', 'none', '--all-kits')).code).toBe(1);
    expect((await run('revoke', id)).code).toBe(0);
    expect((await run('list')).stdout).toBe('No API keys.\n');
    expect((await run('revoke', id)).code).toBe(1);
  });
});

it.each([
  [['add', 'x'], /--kit UUID, or --all-kits/u],
  [['add', 'x', '--kit', 'seven'], /not a UUID/u],
  [['add', 'x', '--all-kits', '--expires', '2020-01-01'], /a future date or time, such as 2027-01-31/u],
  [['add', 'x', '--all-kits', '--expires', 'tomorrow 2050'], /a future date or time/u],
  [['add', 'x', '--all-kits', '--scope', 'fly'], /"fly" is not a scope; use read, assets:write, commands/u],
])('refuses %j with the remedy', async (words, sentence) => {
  await withDirectory(async (dir) => {
    const database = join(dir, 'service.db');
    const { code, stderr } = await startChild([
      command_file,
      'service',
      'key',
      ...words,
      '--database',
      database,
    ]).ended;
    expect([code, stderr]).toEqual([64, expect.stringMatching(sentence)]);
  });
});
