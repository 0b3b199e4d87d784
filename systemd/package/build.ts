/** `npm run package`: makes the Debian packages. Options: --arch amd64 --arch arm64, --version, --out, --compression. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { env } from 'node:process';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { runTool } from './command-line.ts';
import { type Deb, writeDeb } from './deb.ts';
import { stepsOn } from '../../src/cli/terminal/progress.ts';
import { layOut, steps } from './tree.ts';
import { missingTools, type Target, targetNamed, targets } from './target.ts';

export const root = resolve(import.meta.dirname, '../..');
const packageFile = z.looseObject({ version: z.string() });

export interface BuildOptions {
  readonly target: Target;
  /** That of package.json when left out. */
  readonly version?: string | undefined;
  /** Where the packages go; libraries for other machines are kept there too. */
  readonly out: string;
  readonly compression: Deb['compression'];
}

/** Makes one package and answers its path. */
export async function buildPackage({ target, out, compression, ...wanted }: BuildOptions): Promise<string> {
  const version = wanted.version ?? (await packageVersion());
  const deb: Deb = { version, architecture: target.architecture, time: await sourceTime(), compression };
  const bar = stepsOn(process.stderr, target.architecture, steps.length + 1);
  const tree = await mkdtemp(join(tmpdir(), 'kit-connector-package-'));
  try {
    await layOut(tree, { root, cache: out, onStep: bar.next }, target, deb);
    bar.next('packing');
    return await writeDeb(tree, join(root, 'systemd/package/debian'), out, deb);
  } finally {
    bar.end();
    await rm(tree, { recursive: true, force: true });
  }
}

export async function packageVersion(): Promise<string> {
  return packageFile.parse(JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))).version;
}

/** https://reproducible-builds.org/specs/source-date-epoch/, else the time of the commit. */
export async function sourceTime(): Promise<Date> {
  const given =
    env['SOURCE_DATE_EPOCH'] ?? (await runTool('git', ['log', '-1', '--format=%ct'], { cwd: root }));
  const seconds = Number(given);
  if (!Number.isSafeInteger(seconds) || seconds <= 0)
    throw new Error(`SOURCE_DATE_EPOCH is "${given}"; write seconds since 1970`);
  return new Date(seconds * 1000);
}

/** Every package that is asked for, in this order. Throws before the first is made when a tool for any of them is missing. */
async function buildAll(): Promise<void> {
  const { values } = parseArgs({
    options: {
      arch: { type: 'string', multiple: true, default: targets.map(({ architecture }) => architecture) },
      version: { type: 'string' },
      out: { type: 'string', default: join(root, 'dist') },
      compression: { type: 'string', default: 'xz' },
    },
  });
  const wanted = values.arch.map((name) => targetNamed(name));
  const missing = missingTools(wanted, env['PATH'] ?? '');
  if (missing.length > 0) {
    const names = missing.map(({ tool }) => tool).join(', ');
    const packages = [...new Set(missing.map(({ debian }) => debian))].join(' ');
    throw new Error(`not installed: ${names}; run "apt-get install ${packages}"`);
  }
  for (const target of wanted) {
    const file = await buildPackage({
      target,
      version: values.version,
      out: resolve(values.out),
      compression: values.compression === 'none' ? 'none' : 'xz',
    });
    process.stdout.write(`${file}\n`);
  }
}

if (import.meta.main) {
  await buildAll().catch((error: unknown) => {
    process.stderr.write(`npm run package: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });
}
