/** An upgrade that is cut off by the loss of power: dpkg is killed before each of its steps in turn. */
import { spawnSync } from 'node:child_process';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { writeDeb } from '../../../systemd/package/deb.ts';
import { entry_file, leadByOneFile, program_dir } from '../../../systemd/package/program-dir.ts';
import { peerMissing, program } from '../../support/peers.ts';
import { testDirectory } from '../../support/test-directory.ts';

/**
 * A program whose parts fit together only if they are of one version: modules with a digest in their name and without, a
 * script that is started by its name, a native library of several files, and the versions of neighbours in the alphabet.
 */
function programOf(version: string, chunk: string): Readonly<Record<string, string>> {
  const same = (part: string): string =>
    `if (${part} !== '${version}') throw new Error('mixed with ' + ${part});\n`;
  return {
    'app/kit-connector.mjs': `import { main } from './main-${chunk}.mjs';\n${same('main')}console.log(main);\n`,
    [`app/main-${chunk}.mjs`]: `
      import { readFileSync } from 'node:fs';
      import { library } from 'library';
      import { worker } from './worker.mjs';
      ${same('library')}${same('worker')}
      export const main = JSON.parse(readFileSync(new URL('./package.json', import.meta.url), 'utf8')).version;\n`,
    'app/worker.mjs': `export const worker = '${version}';\n`,
    'app/package.json': JSON.stringify({ type: 'module', version }),
    'node_modules/library/package.json': '{ "type": "module", "main": "lib/index.js" }',
    'node_modules/library/lib/index.js': `import { native } from '../prebuilds/native.js';\n${same('native')}export const library = native;\n`,
    'node_modules/library/prebuilds/native.js': `export const native = '${version}';\n`,
    // Of this version alone.
    [`node_modules/${chunk}/index.js`]: '',
  };
}

async function makePackage(dir: string, version: string, chunk: string): Promise<string> {
  const tree = join(dir, `tree-${version}`);
  const files = { 'bin/node': version, ...programOf(version, chunk) };
  for (const [path, text] of Object.entries(files)) {
    const file = join(tree, program_dir, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  await leadByOneFile(tree);
  const time = new Date('2026-01-02T03:04:05Z');
  const what = { name: 'program', description: 'a program', control: {}, scripts: [] };
  return writeDeb(what, { tree, debian: dir }, dir, {
    version,
    architecture: 'all',
    time,
    compression: 'none',
  });
}

function unpack(root: string, file: string, before: readonly string[] = []): number | null {
  const force = ['not-root', 'bad-path', 'script-chrootless', 'depends', 'unsafe-io'].map(
    (each) => `--force-${each}`,
  );
  const [command, ...args] = [...before, program('dpkg'), `--root=${root}`, ...force, '--unpack', file];
  return spawnSync(command, args, { stdio: 'ignore' }).status;
}

/** Kills dpkg as it begins its system call number `nth` of a kind, which replaces a file or removes one. */
function killedAt(kind: 'rename' | 'unlink', nth: number): readonly string[] {
  const kill = `--inject=/^${kind}:signal=KILL:when=${nth}`;
  return [program('strace'), '-qq', '--output=/dev/null', `--trace=/^${kind}`, kill];
}

function start(root: string): string {
  const { stdout, stderr } = spawnSync(process.execPath, [join(root, entry_file)], { encoding: 'utf8' });
  return stdout.trim() || (/^\w*Error.*/m.exec(stderr)?.[0] ?? stderr);
}

describe.skipIf(peerMissing('dpkg', 'strace'))('an upgrade that is cut off', () => {
  test.for([
    ['replaces', 'rename'],
    ['removes', 'unlink'],
  ] as const)(
    'leaves the whole old program or the whole new one, whichever file dpkg %s next',
    async ([, kind]) => {
      const dir = await testDirectory();
      const [old, next] = [await makePackage(dir, '1.0', 'zz1'), await makePackage(dir, '2.0', 'aa2')];
      const installed = join(dir, 'installed');
      for (const path of ['info', 'updates', 'triggers'])
        await mkdir(join(installed, 'var/lib/dpkg', path), { recursive: true });
      await writeFile(join(installed, 'var/lib/dpkg/status'), '');
      expect(unpack(installed, old)).toBe(0);
      const started: string[] = [];
      for (let nth = 1, code: number | null = null; code !== 0; nth += 1) {
        const root = join(dir, 'root');
        await cp(installed, root, { recursive: true });
        code = unpack(root, next, killedAt(kind, nth));
        started.push(start(root));
        await rm(root, { recursive: true });
      }
      expect([...new Set(started)]).toEqual(['1.0', '2.0']);
      expect(started.toSorted()).toEqual(started);
      expect(started.length).toBeGreaterThan(10);
    },
  );
});
