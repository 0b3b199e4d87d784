/** The binaries that others built and the package ships: each is recorded by version and digest in `binaries.json`. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { z } from 'zod';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/u);
const binary = z.strictObject({
  package: z.string(),
  version: z.string(),
  /** Debian's name. */
  architecture: z.enum(['amd64', 'arm64']),
  /** Below the directory of the npm package. */
  file: z.string(),
  sha256,
  built_by: z.string(),
  /** Of what its project publishes, where that is an archive with its own digests. */
  archive: z.strictObject({ name: z.string(), sha256, member: z.string() }).optional(),
});
export type Binary = z.output<typeof binary>;

/** Every binary that is recorded. */
export async function recordedBinaries(): Promise<readonly Binary[]> {
  const text = await readFile(new URL('./binaries.json', import.meta.url), 'utf8');
  return z.array(binary).parse(JSON.parse(text));
}

export async function sha256Of(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

/** Binaries of a tree that the package ships: where they lie in it and the npm package that each comes from. */
export interface Shipped {
  readonly package: string;
  readonly version: string;
  readonly architecture: string;
  readonly file: string;
  readonly path: string;
}

/** Throws unless each file is recorded for its package, version and architecture, with the digest that it has. */
export async function checkBinaries(shipped: readonly Shipped[], recorded: readonly Binary[]): Promise<void> {
  for (const each of shipped) {
    const name = `${each.file} of ${each.package} ${each.version} for ${each.architecture}`;
    const found = await sha256Of(each.path);
    const record = recorded.find(
      (one) =>
        one.package === each.package &&
        one.version === each.version &&
        one.architecture === each.architecture &&
        one.file === each.file,
    );
    if (!record)
      throw new Error(`${name} is not in binaries.json; find out who built it, then record it with ${found}`);
    if (record.sha256 !== found)
      throw new Error(`${name} has the digest ${found}, and ${record.sha256} is recorded; do not ship it`);
  }
}

const about = z.looseObject({ name: z.string(), version: z.string() });

/** The ELF files below the directory of an npm package, as far as `isShipped` takes them. */
export async function binariesOf(
  dir: string,
  architecture: string,
  isShipped: (file: string) => boolean,
): Promise<readonly Shipped[]> {
  const { name, version } = about.parse(JSON.parse(await readFile(join(dir, 'package.json'), 'utf8')));
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const found: Shipped[] = [];
  for (const entry of entries) {
    const path = join(entry.parentPath, entry.name);
    const file = relative(dir, path);
    if (!entry.isFile() || !isShipped(file) || !(await isElf(path))) continue;
    found.push({ package: name, version, architecture, file, path });
  }
  return found;
}

async function isElf(path: string): Promise<boolean> {
  await using handle = await open(path);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(4), 0, 4, 0);
  return bytesRead === 4 && buffer.toString('latin1') === '\u007fELF';
}
