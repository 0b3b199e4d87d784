/** A folder that apt installs and upgrades from, served by any web server: packages, their list, and its signature. */
import { copyFile, mkdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { runTool } from './command-line.ts';

/**
 * Adds packages to the repository in `dir` and signs its list anew with `key` of gpg, which the caller has (GNUPGHOME). It is
 * flat: `deb [signed-by=/etc/apt/keyrings/kit-connector.asc] https://host/path ./` (sources.list(5)). Earlier versions in `dir`
 * stay offered. Needs apt-ftparchive and gpg.
 */
export async function makeRepository(dir: string, key: string, debs: readonly string[]): Promise<void> {
  await mkdir(dir, { recursive: true });
  for (const file of debs) await copyFile(file, join(dir, basename(file)));
  const list = await runTool('apt-ftparchive', ['packages', '.'], { cwd: dir });
  await writeFile(join(dir, 'Packages'), list);
  const options = ['-o', 'APT::FTPArchive::Release::Origin=kit-connector'];
  await writeFile(
    join(dir, 'Release'),
    await runTool('apt-ftparchive', [...options, 'release', '.'], { cwd: dir }),
  );
  const sign = ['--batch', '--yes', '--local-user', key, '--output', 'InRelease', '--clear-sign', 'Release'];
  await runTool('gpg', sign, { cwd: dir });
  await runTool('gpg', ['--batch', '--yes', '--armor', '--output', 'kit-connector.asc', '--export', key], {
    cwd: dir,
  });
}
