/**
 * Where the program lies, so that an upgrade that is cut off leaves the old one or the new one, never a mixture: dpkg
 * replaces one file after the other. What fits together only in one version lies in a directory named by its content, which
 * the upgrade adds beside the old one; one small file, the last of the archive, leads to it.
 */
import { createHash } from 'node:crypto';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';

export const program_dir = 'usr/lib/kit-connector';
/** Named by the units and by /usr/bin/kit-connector. */
export const entry_file = `${program_dir}/app/kit-connector.mjs`;
/** Of one version. Node.js is not among them: it is one file, and its libraries take any version of it (Node-API). */
const parts = ['app', 'node_modules'] as const;

/** Moves the parts of the program in `tree` below a directory of their own, and writes the file that leads to it. */
export async function leadByOneFile(tree: string): Promise<void> {
  const root = join(tree, program_dir);
  const digest = createHash('sha256');
  for (const file of await filesBelow(root, parts))
    digest.update(`${file}\0`).update(await readFile(join(root, file)));
  const dir = `program-${digest.digest('hex').slice(0, 12)}`;
  await mkdir(join(root, dir));
  for (const part of parts) await rename(join(root, part), join(root, dir, part));
  await mkdir(dirname(join(tree, entry_file)));
  await writeFile(join(tree, entry_file), `import '../${dir}/app/kit-connector.mjs';\n`);
}

async function filesBelow(root: string, dirs: readonly string[]): Promise<readonly string[]> {
  const found = dirs.map(async (dir) => {
    const entries = await readdir(join(root, dir), { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => relative(root, join(entry.parentPath, entry.name)));
  });
  return (await Promise.all(found)).flat().toSorted();
}
