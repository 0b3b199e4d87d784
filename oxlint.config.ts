/** Settings of the linter. The import rules are made of the table in src/tools/rooms.ts. */
import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { defineConfig, type OxlintOverride } from 'oxlint';
import { z } from 'zod';
import { apart, driver_packages, never, rooms, type Room } from './src/tools/rooms.ts';

/** Folders below a room that rules reach. */
const depth_max = 4;

const names = z.record(z.string(), z.string());
const manifest = z
  .object({ dependencies: names, devDependencies: names })
  .parse(JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8')));
const all_packages = Object.keys({ ...manifest.dependencies, ...manifest.devDependencies });

interface Pattern {
  readonly group?: string[];
  readonly regex?: string;
  readonly message: string;
  readonly allowTypeImports?: boolean;
  readonly importNames?: string[];
}

const files = (folder: string, depth: number): string[] => [`${folder}${'/*'.repeat(depth)}.{ts,js,mjs}`];
const target = (name: string): string => (name.endsWith('.ts') ? name : `${name}/**`);

/** What files `depth` folders deep in `room` may not import. */
function patterns(room: Room, depth: number): Pattern[] {
  const up = '../'.repeat(depth);
  const isDriver = room.folder.startsWith('drivers/');
  const here = room.folder + '/x'.repeat(depth - 1);
  const to = (path: string): string => posix.relative(here, path);
  const path = (name: string): string => to(name === 'drivers' ? 'drivers/**' : `src/${target(name)}`);
  const { imports, types = [], packages = [], node } = room;
  const name = isDriver ? 'a driver' : room.folder;
  const see = 'see the table in src/README.md';
  return [
    // Expressions, and before the next one: an exception of any group ends the search.
    ...types.map((each) => ({
      regex: `^${path(each).replaceAll('.', '\\.').replace('**', '')}`,
      message: `${name} may import types of ${each} only`,
      allowTypeImports: true,
    })),
    ...(isDriver
      ? [
          {
            regex: `^${to('src/platform/time.ts').replaceAll('.', '\\.')}$`,
            importNames: ['backoff'],
            message: 'a driver has no retry loop of its own: use serveDevice of src/toolkit/device',
          },
        ]
      : []),
    {
      group: [`${up}**`, ...[...imports, ...types].map((each) => `!${path(each)}`)],
      message: `${name} may not import this: ${see}`,
    },
    {
      group: all_packages.flatMap((each) => (packages.includes(each) ? [] : [each, `${each}/**`])),
      message: `${name} may not import this package: ${see}`,
    },
    ...Object.entries(never).map(([module, message]) => ({ group: [`node:${module}`], message })),
    ...(node
      ? [
          {
            group: ['node:*', 'node:*/**', ...node.map((each) => `!node:${each}`)],
            message: `${name} may not import this: it is kept from the machine`,
          },
        ]
      : []),
  ];
}

/** The rule of one room. A later override replaces an earlier one, hence one for each depth. */
function importRules(room: Room): OxlintOverride[] {
  return Array.from({ length: depth_max }, (_, index) => ({
    files: files(room.folder, index + 1),
    rules: { 'no-restricted-imports': ['error', { patterns: patterns(room, index + 1) }] },
  }));
}

/** Neither side of the outbox imports the other. */
function apartRules(): OxlintOverride[] {
  const room = rooms.find(({ folder }) => folder === apart.folder);
  if (!room) throw new Error(`${apart.folder} is not in the table`);
  return apart.sides.flatMap((side) =>
    [1, 2].map((depth) => ({
      files: files(`${apart.folder}/${side}`, depth),
      rules: {
        'no-restricted-imports': [
          'error',
          {
            patterns: [
              ...patterns(room, depth + 1),
              ...apart.sides
                .filter((other) => other !== side)
                .map((other) => ({
                  group: [`${'../'.repeat(depth)}${other}/**`],
                  message: `${side}/ and ${other}/ run on different threads`,
                })),
            ],
          },
        ],
      },
    })),
  );
}

const drivers = rooms.find(({ folder }) => folder === 'drivers/*');
const driverRules = Object.entries(driver_packages).flatMap(([name, packages]) =>
  drivers
    ? importRules({
        ...drivers,
        folder: `drivers/${name}`,
        packages: [...(drivers.packages ?? []), ...packages],
      })
    : [],
);

export default defineConfig({
  plugins: ['typescript', 'import', 'unicorn', 'oxc', 'promise', 'node', 'vitest'],
  categories: { correctness: 'error', suspicious: 'error', perf: 'error' },
  ignorePatterns: ['dist/**', 'node_modules/**', 'coverage/**'],
  rules: {
    'typescript/no-explicit-any': 'error',
    'typescript/no-floating-promises': 'error',
    'typescript/no-misused-promises': 'error',
    'typescript/no-unsafe-assignment': 'error',
    'typescript/no-unsafe-argument': 'error',
    'typescript/no-unsafe-call': 'error',
    'typescript/no-unsafe-member-access': 'error',
    'typescript/no-unsafe-return': 'error',
    'typescript/switch-exhaustiveness-check': 'error',
    'typescript/only-throw-error': 'error',
    'typescript/return-await': 'error',
    'typescript/consistent-type-imports': 'error',
    'typescript/no-non-null-assertion': 'error',
    'import/no-cycle': 'error',
    'import/no-default-export': 'error',
    complexity: ['error', { max: 12 }],
    'max-lines-per-function': ['error', { max: 100, skipBlankLines: true, skipComments: true }],
    'max-lines': ['error', { max: 800 }],
    'max-params': ['error', { max: 4 }],
    'no-console': 'error',
    'node/no-process-env': 'error',
    'no-await-in-loop': 'off',
    'unicorn/no-array-sort': 'off',
    'unicorn/consistent-function-scoping': 'off',
    'no-shadow': 'off',
    'unicorn/prefer-add-event-listener': 'off',
    'unicorn/require-post-message-target-origin': 'off',
    'unicorn/no-array-reverse': 'off',
    'import/no-unassigned-import': 'off',
    'unicorn/no-array-for-each': 'off',
    'typescript/no-unnecessary-type-arguments': 'off',
    'no-underscore-dangle': 'off',
    'unicorn/prefer-event-target': 'off',
  },
  overrides: [
    ...rooms.flatMap(importRules),
    ...driverRules,
    ...apartRules(),
    {
      // Tools read their settings from a default export, and htm has no other.
      files: ['oxlint.config.ts', 'test/vitest.config.ts', 'src/console/htm.d.ts'],
      rules: { 'import/no-default-export': 'off' },
    },
    {
      files: ['src/cli/**/*.ts', 'src/main.ts', 'src/tools/docs.ts', 'test/**/*.ts'],
      rules: { 'no-console': 'off', 'node/no-process-env': 'off' },
    },
    {
      files: ['test/**/*.ts'],
      rules: {
        'max-lines-per-function': 'off',
        'typescript/no-unsafe-type-assertion': 'off',
        'typescript/no-non-null-assertion': 'off',
        'oxc/no-map-spread': 'off',
        'vitest/no-standalone-expect': 'off',
        'vitest/expect-expect': [
          'error',
          { assertFunctionNames: ['expect', 'expectTo*', 'eventually', 'soon', 'fc.assert', 'forAll'] },
        ],
        'import/no-named-as-default-member': 'off',
      },
    },
  ],
});
