/**
 * `npm run verify-runtime`: compares the recorded Node.js with what nodejs.org publishes. The archives are fetched, their
 * digests compared with SHASUMS256.txt and with the record, and the executable inside with that of the package.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Binary, recordedBinaries, sha256Of } from './binaries.ts';
import { runTool } from './command-line.ts';

export const published_at = 'https://nodejs.org/dist';
const fetch_ms = 300_000;

/** The site is not reached from here: nothing is known then. */
export class NotReached extends Error {
  override readonly name = 'NotReached';
}

/** Rejects with what differs, or with `NotReached`. */
export async function verifyRuntime(binary: Binary, base_url = published_at): Promise<void> {
  const { archive, version, sha256 } = binary;
  if (!archive) throw new Error(`${binary.package} has no archive of its project in binaries.json`);
  const folder = `${base_url}/v${version}`;
  const list = (await download(`${folder}/SHASUMS256.txt`)).toString('utf8');
  const published = list
    .split('\n')
    .find((line) => line.endsWith(`  ${archive.name}`))
    ?.split(' ')[0];
  if (published !== archive.sha256)
    throw new Error(
      `${archive.name} is published as ${published ?? 'nothing'}, recorded as ${archive.sha256}`,
    );
  const dir = await mkdtemp(join(tmpdir(), 'kit-connector-runtime-'));
  try {
    const file = join(dir, archive.name);
    await writeFile(file, await download(`${folder}/${archive.name}`));
    await expectDigest(file, archive.sha256, archive.name);
    await runTool('tar', ['--extract', `--file=${file}`, `--directory=${dir}`, archive.member]);
    await expectDigest(join(dir, archive.member), sha256, `${archive.member} of ${archive.name}`);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

async function expectDigest(file: string, wanted: string, name: string): Promise<void> {
  const found = await sha256Of(file);
  if (found !== wanted) throw new Error(`${name} has the digest ${found}, and ${wanted} is recorded`);
}

async function download(url: string): Promise<Buffer> {
  const response = await fetch(url, { signal: AbortSignal.timeout(fetch_ms) }).catch((error: unknown) => {
    throw new NotReached(`${url} is not reached`, { cause: error });
  });
  if (!response.ok) throw new NotReached(`${url} answers ${response.status}`);
  return Buffer.from(await response.arrayBuffer());
}

if (import.meta.main) {
  const runtimes = (await recordedBinaries()).filter(({ archive }) => archive !== undefined);
  for (const runtime of runtimes) {
    const name = `Node.js ${runtime.version} for ${runtime.architecture}`;
    try {
      await verifyRuntime(runtime);
      process.stdout.write(`${name} equals the archive that nodejs.org publishes\n`);
    } catch (error) {
      const isSkipped = error instanceof NotReached;
      const words = error instanceof Error ? error.message : String(error);
      process.stdout.write(`${isSkipped ? 'skipped: ' : ''}${name}: ${words}\n`);
      if (!isSkipped) process.exitCode = 1;
    }
  }
}
