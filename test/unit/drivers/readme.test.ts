/** What the READMEs and the changelog say of the drivers is complete: no driver and no function of the host is left out. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { drivers } from '../../../drivers/index.ts';

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const own = read('drivers/README.md');
const row = /^\| \[(\w+)\]\((\w+)\/README\.md\) .* \| (yes|always|) ?\|$/gmu;

it('the table of drivers names each built-in driver and what setup finds', () => {
  const rows = [...own.matchAll(row)].map(([, name, folder, found]) => ({
    name,
    folder,
    looks: found === 'yes',
  }));
  const built = drivers.map(({ name, suggest }) => ({ name, folder: name, looks: suggest !== undefined }));
  expect(rows).toEqual(built.toSorted((a, b) => a.name.localeCompare(b.name)));
});

it('README and changelog name each built-in driver', () => {
  const readme = read('README.md');
  const changelog = read('CHANGELOG.md');
  for (const { name } of drivers) {
    expect(readme).toContain(`[${name}](drivers/${name}/README.md)`);
    expect(changelog).toContain(`\`${name}\``);
  }
});

it.each(drivers)('the README of $name shows options that the driver accepts', async ({ name, load }) => {
  const samples = [...read(`drivers/${name}/README.md`).matchAll(/```yaml\n(drivers:[^]+?)```/gu)];
  expect(samples.length).toBeGreaterThan(0);
  const driver = await load();
  expect(driver.name).toBe(name);
  for (const [, text = ''] of samples) {
    const file = parse(text) as {
      readonly drivers: readonly { readonly driver: string; readonly options: unknown }[];
    };
    for (const entry of file.drivers.filter((each) => each.driver === name))
      expect(() => driver.configure(entry.options)).not.toThrow();
  }
});

it('every function of the host and every key of an asset is explained to those who write a driver', () => {
  const source = read('src/toolkit/driver/driver.ts');
  const body = (name: string): string =>
    source.slice(source.indexOf(`export interface ${name}`)).split('\n}\n', 1)[0] ?? '';
  const host = [...body('DriverHost').matchAll(/^ {2}readonly (\w+):/gmu)].map(([, name = '']) => name);
  const sink = [...body('AssetSink').matchAll(/^ {2}(\w+)[<(]/gmu)].map(([, name = '']) => name);
  expect(host).toContain('announce');
  expect(sink).toContain('publish');
  for (const name of host) expect(own).toMatch(new RegExp(`^\\| \`${name}\\b`, 'mu'));
  for (const name of [...sink, 'rtsp_url', 'offline_reason', 'parent_key'])
    expect(own).toContain(`\`${name}`);
});
