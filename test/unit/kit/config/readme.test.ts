/** What the README says of the configuration and of the kit's sentences is what the code does. */
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { drivers } from '../../../../drivers/index.ts';
import { degradedReasons } from '../../../../src/kit/app/degraded.ts';
import { readConfig } from '../../../../src/kit/config/config.ts';
import { configFile } from '../../../../src/kit/config/schema.ts';
import { troubles, well } from '../../../support/kit/troubles.ts';
import { withDirectory } from '../../../support/temporary.ts';

const readme = readFileSync(new URL('../../../../README.md', import.meta.url), 'utf8');
const degraded_page = readFileSync(new URL('../../../../src/kit/app/README.md', import.meta.url), 'utf8');
const sample = /```yaml\n([^]*?)```/u.exec(readme)?.[1] ?? '';
const secrets_dir = '/etc/kit-connector';

/** Writes the file into a directory of its own, with the secrets that it names beside it, and reads it. */
async function read(text: string) {
  return withDirectory(async (dir) => {
    await mkdir(join(dir, 'secrets'));
    await writeFile(join(dir, 'secrets/mqtt-password'), 'secret', { mode: 0o600 });
    const file = join(dir, 'config.yaml');
    await writeFile(file, text.replaceAll(secrets_dir, join(dir, 'secrets')));
    return readConfig(file, { drivers, credentials_dir: undefined });
  });
}

it('the sample of the configuration is accepted and names every section', async () => {
  const config = await read(sample);
  expect(config.drivers.map(({ name }) => name)).toEqual(['gateway', 'links']);
  for (const key of Object.keys(configFile.shape)) expect(sample).toMatch(new RegExp(`^(# )?${key}:`, 'mu'));
});

it('the values that the sample calls defaults are the defaults', async () => {
  const shown = await read(sample);
  const bare = await read(
    'kit_id: 3f0c1f6e-52a4-4c0e-9d6b-1f2a7c9e4b10\nbroker: { url: mqtts://broker.example.com:8883 }\n',
  );
  expect({ ...shown.broker, password: undefined }).toEqual(bare.broker);
  expect({ ...shown.uplink, backlog_bytes_per_s: bare.uplink.backlog_bytes_per_s }).toEqual(bare.uplink);
  expect({ ...shown.commands, disabled: [] }).toEqual(bare.commands);
  for (const key of ['state_dir', 'runtime_dir', 'outbox', 'feeds', 'telemetry'] as const)
    expect(shown[key]).toEqual(bare[key]);
});

it('each sentence of a kit that is not at its best is explained', () => {
  const rows = degraded_page.slice(degraded_page.indexOf('| sentence |')).split('\n| ').slice(1);
  const patterns = rows.map((row) => {
    const [, pattern = ''] = /^`([^`]*)`/u.exec(row) ?? [];
    return new RegExp(
      `^${pattern
        .split('...')
        .map((part) => part.replaceAll(/[.()[\]]/gu, '\\$&'))
        .join('.*')}$`,
      'u',
    );
  });
  expect(degradedReasons(well)).toEqual([]);
  for (const trouble of troubles) {
    const reasons = degradedReasons({ ...well, ...trouble });
    expect(reasons).toHaveLength(1);
    expect(patterns.filter((pattern) => pattern.test(reasons[0] ?? ''))).toHaveLength(1);
  }
});
