/** Makes a .deb of a tree of files, byte for byte the same each time. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { appendFile, chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { runTool } from './command-line.ts';
import { type Package, version_variable } from './packages.ts';
import { entry_file } from './program-dir.ts';

export interface Deb {
  readonly version: string;
  readonly architecture: string;
  readonly time: Date;
  /** `none` is for tests, where packing would take most of the time. */
  readonly compression: 'xz' | 'none';
}

const maintainer = 'kit-connector developers <dev@kit-connector.invalid>';

/** Writes `NAME_VERSION_ARCHITECTURE.deb` into `out` from `tree` and the scripts in `debian`; answers its path. */
export async function writeDeb(
  what: Omit<Package, 'files'>,
  { tree, debian }: { readonly tree: string; readonly debian: string },
  out: string,
  deb: Deb,
): Promise<string> {
  await setModes(tree);
  const files = await filesIn(tree);
  const control = `${tree}-control`;
  await mkdir(control);
  for (const script of what.scripts) {
    const text = await readFile(join(debian, script), 'utf8');
    await writeFile(join(control, basename(script)), text.replaceAll('#PACKAGE#', what.name));
  }
  const sums = await Promise.all(files.map(async (path) => `${await md5(join(tree, path))}  ${path}\n`));
  await writeFile(join(control, 'md5sums'), sums.join(''));
  const sizes = await Promise.all(files.map(async (path) => (await stat(join(tree, path))).size));
  await writeFile(join(control, 'control'), controlText(what, deb, installedSize(sizes)));
  await setModes(control);
  for (const script of what.scripts) await chmod(join(control, basename(script)), 0o755);

  const file = join(out, `${what.name}_${deb.version}_${deb.architecture}.deb`);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, '!<arch>\n');
  await addMember(file, 'debian-binary', Buffer.from('2.0\n'), deb);
  await addTar(file, 'control', control, deb);
  await addTar(file, 'data', tree, deb);
  await rm(control, { recursive: true });
  return file;
}

/** dpkg replaces files in the order of the archive; `dpkg-deb --build` would order them by name. */
async function addTar(file: string, name: string, dir: string, deb: Deb): Promise<void> {
  const packed = `${file}.${name}`;
  const list = `${packed}.list`;
  await writeFile(list, (await inOrder(dir)).join('\0'));
  const seconds = Math.floor(deb.time.getTime() / 1000);
  // More threads would make other blocks, and so another file on a machine with more cores.
  const packing = deb.compression === 'xz' ? ['--use-compress-program=xz -6 --threads=1'] : [];
  const owner = ['--owner=root:0', '--group=root:0', `--mtime=@${seconds}`];
  const listed = ['--no-recursion', `--directory=${dir}`, '--null', `--files-from=${list}`];
  await runTool('tar', ['--create', '--format=gnu', `--file=${packed}`, ...packing, ...owner, ...listed]);
  const suffix = deb.compression === 'xz' ? '.tar.xz' : '.tar';
  await addMember(file, `${name}${suffix}`, await readFile(packed), deb);
  await rm(packed);
  await rm(list);
}

/** A directory before what it holds, and the file that leads to the program after everything else. */
async function inOrder(dir: string): Promise<readonly string[]> {
  const entries = await readdir(dir, { recursive: true });
  const others = entries.filter((path) => path !== entry_file).toSorted();
  const last = entries.filter((path) => path === entry_file);
  return ['.', ...[...others, ...last].map((path) => `./${path}`)];
}

/** As deb(5) describes it: a header of 60 bytes, and the next one begins at an even place. */
async function addMember(file: string, name: string, content: Buffer, { time }: Deb): Promise<void> {
  const seconds = String(Math.floor(time.getTime() / 1000));
  const fields = [name.padEnd(16), seconds.padEnd(12), '0'.padEnd(6), '0'.padEnd(6), '100644'.padEnd(8)];
  await appendFile(file, `${fields.join('')}${String(content.length).padEnd(10)}\`\n`);
  await appendFile(file, content);
  if (content.length % 2 === 1) await appendFile(file, '\n');
}

/** The changelog of a package, as Debian wants it. */
export function changelog(name: string, { version, time }: Deb): string {
  const date = time.toUTCString().replace('GMT', '+0000');
  return `${name} (${version}) stable; urgency=medium\n\n  * See /usr/share/doc/kit-connector-runtime/CHANGELOG.md.gz.\n\n -- ${maintainer}  ${date}\n`;
}

/** deb-control(5). */
function controlText(
  { name, description, control }: Omit<Package, 'files'>,
  { version, architecture }: Deb,
  installed_kib: number,
): string {
  const fields = {
    Package: name,
    Version: version,
    Architecture: architecture,
    Maintainer: maintainer,
    'Installed-Size': installed_kib,
    ...control,
    Section: 'net',
    Priority: 'optional',
    Description: description,
  };
  return Object.entries(fields)
    .map(([key, value]) => `${key}: ${String(value).trimEnd().replaceAll(version_variable, version)}\n`)
    .join('');
}

/** As dpkg counts: each file in whole KiB. */
function installedSize(sizes: readonly number[]): number {
  return sizes.reduce((sum, bytes) => sum + Math.ceil(bytes / 1024), 0);
}

async function filesIn(tree: string): Promise<readonly string[]> {
  const entries = await readdir(tree, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => relative(tree, join(entry.parentPath, entry.name)))
    .toSorted();
}

/** Whatever the umask of the builder is. What lies in a `bin` is run, nothing else. */
async function setModes(tree: string): Promise<void> {
  await chmod(tree, 0o755);
  for (const entry of await readdir(tree, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    const is_run = entry.isDirectory() || /\/bin\/[^/]+$/.test(path);
    await chmod(path, is_run ? 0o755 : 0o644);
  }
}

async function md5(file: string): Promise<string> {
  const hash = createHash('md5');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}
