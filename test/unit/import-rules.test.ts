/** The import rules of every room, broken once in a copy of the layout, so that a rule that catches nothing is found. */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { apart, driver_packages, never, rooms } from '../../src/tools/rooms.ts';
import { makeDirectory } from '../support/temporary.ts';

const root = join(import.meta.dirname, '../..');
const reported = z.object({
  diagnostics: z.array(
    z.looseObject({ code: z.string().optional(), filename: z.string(), message: z.string() }),
  ),
});

/** A room as it stands in the folders: one driver stands for all. */
const folderOf = (folder: string): string => folder.replace('*', 'gateway');
/** From a file `depth` folders below `folder` to `path`. */
const from = (folder: string, depth: number, path: string): string =>
  posix.relative(folderOf(folder) + '/part'.repeat(depth - 1), path);

interface Sample {
  readonly file: string;
  readonly text: string;
  readonly isForbidden: boolean;
}

const plain = (name: string): string => name.replaceAll(/[/.]/gu, '-');
const fileOf = (name: string): string => (name.endsWith('.ts') ? name : `${name}/any.ts`);

function samplesOf({ folder, imports, types = [], packages = [], node }: (typeof rooms)[number]): Sample[] {
  const own = folderOf(folder);
  const allowed = [...imports, ...types];
  const others = rooms
    .map((room) => room.folder.replace('src/', ''))
    .filter((name) => name !== 'drivers/*' && `src/${name}` !== folder)
    .filter((name) => !allowed.some((each) => each === name || each.startsWith(`${name}/`)));
  return [1, 2, 3].flatMap((depth) => {
    const to = (path: string): string => from(folder, depth, path);
    const below = '/part'.repeat(depth - 1);
    const sample = (name: string, line: string, isForbidden: boolean): Sample => ({
      file: `${own}${below}/${name}.ts`,
      text: `${line}\n`,
      isForbidden,
    });
    return [
      ...others.map((name) =>
        sample(`to-${plain(name)}`, `import { a } from '${to(`src/${name}/any.ts`)}'; a();`, true),
      ),
      ...others.map((name) =>
        sample(`late-${plain(name)}`, `await import('${to(`src/${name}/any.ts`)}');`, true),
      ),
      sample('to-app-root', `import { a } from '${to('src/main.ts')}'; a();`, true),
      sample('to-package', `import { a } from 'fast-check'; a();`, true),
      ...types.map((name) =>
        sample(`values-of-${plain(name)}`, `import { a } from '${to(`src/${fileOf(name)}`)}'; a();`, true),
      ),
      ...Object.keys(never).map((module) =>
        sample(`node-${plain(module)}`, `import { a } from 'node:${module}'; a();`, true),
      ),
      ...(folder.startsWith('drivers/')
        ? [
            sample('backoff', `import { backoff } from '${to('src/platform/time.ts')}'; backoff();`, true),
            sample('sleep', `import { sleep } from '${to('src/platform/time.ts')}'; sleep();`, false),
          ]
        : []),
      ...(node ? [sample('node-fs', `import { a } from 'node:fs'; a();`, true)] : []),
      ...imports.map((name) => {
        const path = to(name === 'drivers' ? 'drivers/any/any.ts' : `src/${fileOf(name)}`);
        return sample(`good-${plain(name)}`, `import { a } from '${path}'; a();`, false);
      }),
      ...types.map((name) =>
        sample(
          `types-of-${plain(name)}`,
          `import type { A } from '${to(`src/${fileOf(name)}`)}'; export type B = A;`,
          false,
        ),
      ),
      ...packages.map((name) =>
        sample(`good-package-${plain(name)}`, `import { a } from '${name}'; a();`, false),
      ),
      sample('good-own', `import { a } from './${depth === 1 ? '' : '../'}own.ts'; a();`, false),
    ];
  });
}

const samples: readonly Sample[] = [
  ...rooms.flatMap(samplesOf),
  ...apart.sides.flatMap((side) =>
    apart.sides
      .filter((other) => other !== side)
      .map((other) => ({
        file: `${apart.folder}/${side}/to-${other}.ts`,
        text: `import { a } from '../${other}/any.ts'; a();\n`,
        isForbidden: true,
      })),
  ),
  ...Object.entries(driver_packages).flatMap(([name, packages]) =>
    packages.flatMap((each) => [
      {
        file: `drivers/${name}/good-own-package.ts`,
        text: `import { a } from '${each}'; a();\n`,
        isForbidden: false,
      },
      {
        file: `drivers/power/package-${each}.ts`,
        text: `import { a } from '${each}'; a();\n`,
        isForbidden: true,
      },
    ]),
  ),
  {
    file: 'drivers/gateway/part/to-other-driver.ts',
    text: `import { a } from '../../power/any.ts'; a();\n`,
    isForbidden: true,
  },
];

describe('The import rules', () => {
  const found = new Set<string>();
  let copy: string;

  afterAll(() => rmSync(copy, { recursive: true }));

  beforeAll(async () => {
    copy = await makeDirectory();
    for (const file of ['oxlint.config.ts', 'package.json']) cpSync(join(root, file), join(copy, file));
    mkdirSync(join(copy, 'src/tools'), { recursive: true });
    cpSync(join(root, 'src/tools/rooms.ts'), join(copy, 'src/tools/rooms.ts'));
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    for (const { file, text } of samples) {
      mkdirSync(join(copy, dirname(file)), { recursive: true });
      writeFileSync(join(copy, file), text);
    }
    const linter = join(root, 'node_modules/oxlint/bin/oxlint');
    // It ends with an error, since it finds what it should.
    const { stdout } = await promisify(execFile)(process.execPath, [linter, '--format=json'], {
      cwd: copy,
      maxBuffer: 64 * 1024 * 1024,
    }).catch((error: unknown) => z.object({ stdout: z.string() }).parse(error));
    for (const { code, filename } of reported.parse(JSON.parse(stdout)).diagnostics) {
      if (code === 'eslint(no-restricted-imports)') found.add(filename);
    }
  });

  it.each(rooms.map(({ folder }) => folderOf(folder)))(
    'reject in %s what its row does not name',
    (folder) => {
      const own = samples.filter(({ file, isForbidden }) => isForbidden && file.startsWith(`${folder}/`));
      expect(own.length).toBeGreaterThan(5);
      expect(own.filter(({ file }) => !found.has(file)).map(({ file }) => file)).toEqual([]);
    },
  );

  it('accept everything that the table allows', () => {
    const allowed = samples.filter(({ isForbidden }) => !isForbidden).map(({ file }) => file);
    expect(allowed.filter((file) => found.has(file))).toEqual([]);
  });

  it('keep the two threads of the outbox and the drivers apart', () => {
    for (const file of [
      'src/kit/outbox/live/to-store.ts',
      'src/kit/outbox/store/to-live.ts',
      'drivers/gateway/part/to-other-driver.ts',
    ])
      expect(found).toContain(file);
    expect(found).toContain('drivers/power/package-net-snmp.ts');
  });

  it('know every folder of src as a room', () => {
    const foldersOf = (parent: string): string[] =>
      readdirSync(join(root, parent), { withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ name }) => `${parent}/${name}`);
    const known = new Set(rooms.map(({ folder }) => folder));
    const floors = new Set(rooms.map(({ folder }) => dirname(folder)).filter((floor) => floor !== 'src'));
    const folders = ['src', ...floors].filter((floor) => floor.startsWith('src')).flatMap(foldersOf);
    const unknown = folders.filter((folder) => !known.has(folder) && !floors.has(folder));
    expect(unknown).toEqual(['src/decisions']);
  });
});
