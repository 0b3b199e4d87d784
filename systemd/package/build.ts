/** `npm run package`: makes the Debian packages. Options: --arch amd64 --arch arm64, --version, --out, --compression, --repository, --key, --images. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { env } from 'node:process';
import { parseArgs } from 'node:util';
import { z } from 'zod';
import { runTool } from './command-line.ts';
import { type Deb, writeDeb } from './deb.ts';
import { buildImages, image_steps } from './images.ts';
import { packages } from './packages.ts';
import { makeRepository } from './repository.ts';
import { type Steps, stepsOn } from '../../src/cli/terminal/progress.ts';
import { layOut, steps } from './tree.ts';
import { image_tools, missingTools, type Target, targetNamed, targets } from './target.ts';

export const root = resolve(import.meta.dirname, '../..');
const packageFile = z.looseObject({ version: z.string() });

export interface BuildOptions {
  readonly target: Target;
  /** That of the commit when left out. */
  readonly version?: string | undefined;
  /** Where the packages go; libraries for other machines are kept there too. */
  readonly out: string;
  readonly compression: Deb['compression'];
  /** Images of containers too, after the packages. */
  readonly images?: boolean;
}

/** Makes the packages for one kind of machine and answers their paths, in the order in which dpkg may take them, then those of images. */
export async function buildPackages({
  target,
  out,
  compression,
  images = false,
  ...wanted
}: BuildOptions): Promise<readonly string[]> {
  const version = wanted.version ?? (await packageVersion());
  const deb: Deb = { version, architecture: target.architecture, time: await sourceTime(), compression };
  const bar = progressOn(process.stderr, target.architecture, steps.length + 1 + (images ? image_steps : 0));
  const trees = await mkdtemp(join(tmpdir(), 'kit-connector-package-'));
  try {
    await layOut(trees, { root, cache: out, onStep: bar.next }, target, deb);
    bar.next('packing');
    const debs: string[] = [];
    for (const each of packages) {
      const content = { tree: join(trees, each.name), debian: join(root, 'systemd/package/debian') };
      debs.push(await writeDeb(each, content, out, deb));
    }
    if (!images) return debs;
    const revision = (await runTool('git', ['rev-parse', 'HEAD'], { cwd: root })).trim();
    return [...debs, ...(await buildImages({ debs, root, revision, onStep: bar.next }, out, deb))];
  } finally {
    bar.end();
    await rm(trees, { recursive: true, force: true });
  }
}

/** A bar on a terminal, and a line for each step in the log of a build machine. */
function progressOn(out: NodeJS.WriteStream, what: string, total: number): Steps {
  if (out.isTTY) return stepsOn(out, what, total);
  return { next: (name) => out.write(`${what}: ${name}\n`), end: () => undefined };
}

/**
 * That of package.json where its tag (v0.2.0) is the commit. Later builds add how many commits came since and which one it is
 * (0.2.0+14.g1a2b3c4, after 0.2.0 for dpkg); before the tag is set they come before it (0.2.0~1310.g1a2b3c4).
 */
export async function packageVersion(dir = root): Promise<string> {
  const git = async (...args: readonly string[]): Promise<string> =>
    (await runTool('git', [...args], { cwd: dir })).trim();
  const { version } = packageFile.parse(JSON.parse(await readFile(join(dir, 'package.json'), 'utf8')));
  const tag = `v${version}`;
  const isTagged = (await git('tag', '--list', tag)) !== '';
  const commits = await git('rev-list', '--count', isTagged ? `${tag}..HEAD` : 'HEAD');
  if (isTagged && commits === '0') return version;
  return `${version}${isTagged ? '+' : '~'}${commits}.g${await git('rev-parse', '--short=7', 'HEAD')}`;
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

/** All packages that are asked for, in this order. Throws before the first is made when a tool for any of them is missing. */
async function buildAll(): Promise<void> {
  const { values } = parseArgs({
    options: {
      arch: { type: 'string', multiple: true, default: targets.map(({ architecture }) => architecture) },
      version: { type: 'string' },
      out: { type: 'string', default: join(root, 'dist') },
      compression: { type: 'string', default: 'xz' },
      repository: { type: 'string' },
      key: { type: 'string' },
      images: { type: 'boolean', default: false },
    },
  });
  const wanted = values.arch.map((name) => targetNamed(name));
  const missing = missingTools(wanted, env['PATH'] ?? '', values.images ? image_tools : []);
  if (missing.length > 0) {
    const names = missing.map(({ tool }) => tool).join(', ');
    const packages = [...new Set(missing.map(({ debian }) => debian))].join(' ');
    throw new Error(`not installed: ${names}; run "apt-get install ${packages}"`);
  }
  const { repository, key } = values;
  if ((repository === undefined) !== (key === undefined))
    throw new Error('--repository DIR and --key KEY go together: apt takes no unsigned repository');
  for (const target of wanted) {
    const files = await buildPackages({
      target,
      version: values.version,
      out: resolve(values.out),
      compression: values.compression === 'none' ? 'none' : 'xz',
      images: values.images,
    });
    process.stdout.write(`${files.join('\n')}\n`);
    if (repository !== undefined && key !== undefined)
      await makeRepository(
        resolve(repository),
        key,
        files.filter((file) => file.endsWith('.deb')),
      );
  }
}

if (import.meta.main) {
  await buildAll().catch((error: unknown) => {
    process.stderr.write(`npm run package: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  });
}
