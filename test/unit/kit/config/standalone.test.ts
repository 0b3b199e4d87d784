/** The file of the service that runs alone: the sample of its README is accepted, and faults are named with their remedy. */
import { readFileSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { readStandalone } from '../../../../src/kit/config/standalone.ts';
import { ConfigInvalid } from '../../../../src/platform/errors.ts';
import { testDirectory } from '../../../support/test-directory.ts';

const readme = readFileSync(new URL('../../../../src/cloud/README.md', import.meta.url), 'utf8');
const sample = /```yaml\n([^]*?)```/u.exec(readme)?.[1] ?? '';

async function read(text: string) {
  const dir = await testDirectory();
  await mkdir(join(dir, 'secrets'));
  await writeFile(join(dir, 'secrets/mqtt-password'), 'secret\n', { mode: 0o600 });
  const file = join(dir, 'service.yaml');
  await writeFile(file, text);
  return readStandalone(file, undefined).catch((error: unknown) => {
    if (error instanceof ConfigInvalid) return error.faults.map((fault) => fault.slice(dir.length + 1));
    throw error;
  });
}

it('the sample of the README is accepted', async () => {
  expect(await read(sample)).toMatchObject({
    broker: { url: 'mqtts://broker.example.com:8883', username: 'cloud', password: 'secret' },
    client_id: 'kit-service',
    listen: { host: '127.0.0.1', port: 8080 },
    hosts: ['kits.example.com'],
    media_origins: [],
  });
});

it.each([
  ['listen: 8080', 'listen', 'in quotes'],
  ['listen: kit.example.com:80', 'listen', 'ADDRESS:PORT'],
  ['listen: 127.0.0.1:99999', 'listen', 'ADDRESS:PORT'],
  ['media_origins: ["http://10.0.0.1:8889/x"]', 'media_origins[0]', 'host and port only'],
  ['media_origins: ["video"]', 'media_origins[0]', 'http://'],
  ['cors_origins: ["https://app.example.com/"]', 'cors_origins[0]', 'host and port only'],
  ['cors_origins: ["capacitor:localhost"]', 'cors_origins[0]', 'capacitor://localhost'],
  ['files: { url: kits.example.com }', 'files.url', 'write an http:// or https:// address'],
  ['files: { url: "ftp://kits.example.com" }', 'files.url', 'write an http:// or https:// address'],
  ['files: { url: "https://kits.example.com/" }', 'files.url', 'host and port only'],
  ['lisen: 127.0.0.1:80', 'lisen', 'listen'],
])('names the fault of "%s"', async (line, key, remedy) => {
  const faults = await read(`broker: { url: 'mqtt://127.0.0.1:1883' }\n${line}\n`);
  expect(faults).toHaveLength(1);
  expect(JSON.stringify(faults)).toContain(key);
  expect(JSON.stringify(faults)).toContain(remedy);
});

it('takes the origins of pages, and those of apps in a web view (appwrite/appwrite#13514)', async () => {
  const origins = ['https://app.example.com', 'capacitor://localhost', 'tauri://app.example.com'];
  const text = `broker: { url: 'mqtt://127.0.0.1:1883' }\ncors_origins: ${JSON.stringify(origins)}\n`;
  expect(await read(text)).toMatchObject({ cors_origins: origins });
});

it('takes an address of IPv6, and a name in capitals', async () => {
  const text = "broker: { url: 'mqtt://127.0.0.1:1883' }\nlisten: '[::1]:0'\nhosts: [Kits.Example.COM]\n";
  expect(await read(text)).toMatchObject({ listen: { host: '::1', port: 0 }, hosts: ['kits.example.com'] });
});

it('warns of a map that cannot be used, and takes one that can', async () => {
  const broker = "broker: { url: 'mqtt://127.0.0.1:1883' }\n";
  const missing = await read(`${broker}map: area.pmtiles\n`);
  expect(missing).toMatchObject({ map_file: expect.stringMatching(/\/area\.pmtiles$/u) as string });
  expect(missing).toMatchObject({
    warnings: [expect.stringContaining('area.pmtiles cannot be read') as string],
  });
  expect(await read(`${broker}map: secrets\n`)).toMatchObject({
    warnings: [expect.stringContaining('is not a file') as string],
  });
  expect(await read(`${broker}map: secrets/mqtt-password\n`)).toMatchObject({
    warnings: [expect.stringContaining('not a PMTiles archive') as string],
  });
});
