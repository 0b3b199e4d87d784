/** The libraries of the lockfile as they are on the machine that a package is for, and which of their files are shipped. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, cp, mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { dirname, extname, join, relative } from 'node:path';
import { z } from 'zod';
import { runTool } from './command-line.ts';
import type { Target } from './target.ts';

const lock_files = ['package.json', 'package-lock.json', '.npmrc'] as const;

/**
 * Installs the lockfile's libraries for `target` into a directory below `cache` and answers it; done once for each
 * state of the lockfile. npm checks the integrity of what it gets.
 */
export async function installFor(target: Target, root: string, cache: string): Promise<string> {
  const lock = await readFile(join(root, 'package-lock.json'));
  const prefix = `dependencies-${target.architecture}-`;
  const dir = join(cache, `${prefix}${createHash('sha256').update(lock).digest('hex').slice(0, 16)}`);
  if (existsSync(dir)) return dir;
  await removeOlder(cache, prefix);
  const unfinished = `${dir}.${process.pid}`;
  await mkdir(unfinished, { recursive: true });
  try {
    for (const file of lock_files) await cp(join(root, file), join(unfinished, file));
    const machine = ['--os=linux', `--cpu=${target.cpu}`, '--libc=glibc'];
    await runTool('npm', ['ci', ...machine, '--omit=dev', '--ignore-scripts'], { cwd: unfinished });
    await rename(unfinished, dir);
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
  return dir;
}

/** Each state takes a quarter of a gigabyte. */
async function removeOlder(cache: string, prefix: string): Promise<void> {
  const names = existsSync(cache) ? await readdir(cache) : [];
  for (const name of names.filter((each) => each.startsWith(prefix))) {
    await rm(join(cache, name), { recursive: true, force: true });
  }
}

const packageFile = z.looseObject({
  dependencies: z.record(z.string(), z.string()).default({}),
  optionalDependencies: z.record(z.string(), z.string()).default({}),
});

/** Wanted by libraries for compiling and generating only. */
const build_tools: ReadonlySet<string> = new Set(['node-addon-api', 'ts-node', 'typescript']);

/** The directories below `root` of these libraries and of all that they need while running. */
export async function closure(root: string, names: readonly string[]): Promise<readonly string[]> {
  const found = new Set<string>();
  const visit = async (name: string, from: string, optional: boolean): Promise<void> => {
    const dir = resolveFrom(root, from, name);
    if (dir === undefined) {
      if (optional) return;
      throw new Error(`${name}, which ${from || 'the package'} needs, is not in ${root}/node_modules`);
    }
    if (found.has(dir)) return;
    found.add(dir);
    const file = packageFile.parse(JSON.parse(await readFile(join(root, dir, 'package.json'), 'utf8')));
    for (const each of Object.keys(file.dependencies)) {
      if (!build_tools.has(each)) await visit(each, dir, false);
    }
    for (const each of Object.keys(file.optionalDependencies)) await visit(each, dir, true);
  };
  for (const name of names) await visit(name, '', false);
  return [...found].toSorted();
}

/** As Node.js looks for it: from the inside out. */
function resolveFrom(root: string, from: string, name: string): string | undefined {
  for (let at = from; ; at = at === '.' ? '' : dirname(at)) {
    const dir = join(at, 'node_modules', name);
    if (existsSync(join(root, dir, 'package.json'))) return dir;
    if (at === '' || at === '.') return undefined;
  }
}

const code_files: ReadonlySet<string> = new Set(['.js', '.cjs', '.mjs', '.json']);
/** Sources of native parts, builds for developers, and what is not for running. */
const left_out =
  /(^|\/)(node_modules|deps|vendor|examples|doc|tests?|sanity-check[^/]*|tsconfig\.json)(\/|$)|-dev\.mjs$/;

/** Copies what runs on `target` from the directory of one library. */
export async function copyLibrary(from: string, to: string, target: Target): Promise<void> {
  const entries = await readdir(from, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    const path = relative(from, join(entry.parentPath, entry.name));
    if (!entry.isFile() || !isNeeded(path, target) || (await isTool(join(from, path)))) continue;
    await mkdir(dirname(join(to, path)), { recursive: true });
    await copyFile(join(from, path), join(to, path));
  }
}

/** Whether a file of a library is shipped: its code, and the binary of the target. */
export function isNeeded(path: string, { cpu }: Target): boolean {
  if (left_out.test(path)) return false;
  if (extname(path) === '.node') return new RegExp(`linux[-_]${cpu}`).test(path) && !path.includes('musl');
  return code_files.has(extname(path));
}

/** A script that names its interpreter is run by people and by builds, never loaded. */
async function isTool(file: string): Promise<boolean> {
  await using handle = await open(file);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(2), 0, 2, 0);
  return bytesRead === 2 && buffer.toString('latin1') === '#!';
}
