/** The bundle that the package ships, against the sources that it is made of. */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { definitions_file } from '../../../systemd/package/bundle.ts';
import { startChild } from '../../support/child.ts';
import { bundledPrograms } from '../../support/kit/bundled.ts';
import { command_file } from '../../support/kit/kit.ts';
import { testDirectory } from '../../support/test-directory.ts';

test('the bundle has the strings of the sources, and says what they say', async () => {
  const dir = await testDirectory();
  const { command } = await bundledPrograms();
  const app = dirname(command);
  const files = (await readdir(app)).filter((name) => name.endsWith('.mjs'));
  expect(files.length).toBeGreaterThan(10);
  // What is under the LGPL can be replaced: it is a file of its own, with nothing else in it.
  const definitions = await readFile(join(app, definitions_file), 'utf8');
  expect(definitions.match(/^\/\/ .*\.ts$/gmu)).toEqual(['// drivers/mavlink/wire/definitions-table.ts']);
  // The demo and its simulators are for those who have the sources.
  expect(files.filter((name) => /^(?:demo|sim-)/u.test(name))).toEqual([]);
  expect(await readdir(join(app, 'console'))).not.toContain('README.md');
  const config = join(dir, 'config.yaml');
  await writeFile(
    config,
    'kit_id: "Zürich – 基地"\ndrivers:\n  - { driver: mavlink }\n  - { driver: onvif }\n',
  );
  const said = await Promise.all(
    [command, command_file].map(async (entry) => startChild([entry, 'check', config]).ended),
  );
  expect(said[0]).toEqual(said[1]);
  expect(said[0]).toMatchObject({ code: 78 });
});
