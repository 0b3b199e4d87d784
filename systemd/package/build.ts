/** `npm run package`: makes the Debian packages. Options: --arch amd64 --arch arm64, --version, --out, --compression. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { env } from 'node:process';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { runTool } from './command-line.ts';
import { type Deb, writeDeb } from './deb.ts';
import { layOut } from './tree.ts';
import { type Target, targetNamed, targets } from './target.ts';

const root = resolve(import.meta.dirname, '../..');
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
  const version =
    wanted.version ??
    packageFile.parse(JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))).version;
  const deb: Deb = { version, architecture: target.architecture, time: await sourceTime(), compression };
  const tree = await mkdtemp(join(tmpdir(), 'kit-connector-package-'));
  try {
    await layOut(tree, { root, cache: out }, target, deb);
    return await writeDeb(tree, join(root, 'systemd/package/debian'), out, deb);
  } finally {
    await rm(tree, { recursive: true, force: true });
  }
}

/** https://reproducible-builds.org/specs/source-date-epoch/, else the time of the commit. */
async function sourceTime(): Promise<Date> {
  const given =
    env['SOURCE_DATE_EPOCH'] ?? (await runTool('git', ['log', '-1', '--format=%ct'], { cwd: root }));
  const seconds = Number(given);
  if (!Number.isSafeInteger(seconds) || seconds <= 0)
    throw new Error(`SOURCE_DATE_EPOCH is "${given}"; write seconds since 1970`);
  return new Date(seconds * 1000);
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      arch: { type: 'string', multiple: true, default: targets.map(({ architecture }) => architecture) },
      version: { type: 'string' },
      out: { type: 'string', default: join(root, 'dist') },
      compression: { type: 'string', default: 'xz' },
    },
  });
  for (const name of values.arch) {
    const file = await buildPackage({
      target: targetNamed(name),
      version: values.version,
      out: resolve(values.out),
      compression: values.compression === 'none' ? 'none' : 'xz',
    });
    process.stdout.write(`${file}\n`);
  }
}
