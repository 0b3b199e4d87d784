/** What the README says of the configuration and of the kit's sentences is what the code does. */
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { drivers } from '../../../../drivers/index.ts';
import { readConfig } from '../../../../src/kit/config/config.ts';
import { configFile } from '../../../../src/kit/config/schema.ts';
import { testDirectory } from '../../../support/test-directory.ts';

const readme = readFileSync(new URL('../../../../src/help/configuration.md', import.meta.url), 'utf8');
const sample = /```yaml\n([^]*?)```/u.exec(readme)?.[1] ?? '';
const secrets_dir = '/etc/kit-connector';

/** Writes the file into a directory of its own, with the secrets that it names beside it, and reads it. */
async function read(text: string) {
  const dir = await testDirectory();
  await mkdir(join(dir, 'secrets'));
  await writeFile(join(dir, 'secrets/mqtt-password'), 'secret', { mode: 0o600 });
  const file = join(dir, 'config.yaml');
  await writeFile(file, text.replaceAll(secrets_dir, join(dir, 'secrets')));
  return readConfig(file, { drivers, credentials_dir: undefined });
}

it('the sample of the configuration is accepted and names every section', async () => {
  const config = await read(sample);
  expect(config.drivers.map(({ name }) => name)).toEqual(['gateway', 'links']);
  for (const key of Object.keys(configFile.shape)) expect(sample).toMatch(new RegExp(`^(# )?${key}:`, 'mu'));
});
