/**
 * The command and the daemon of the tests as bundles: a process that reads the sources file by file and removes their types needs
 * half as much processor time again to start.
 */
import { symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { version } from '../../../src/cli/version.ts';
import { madeOnce } from '../service/made-once.ts';

const root = join(import.meta.dirname, '../../..');
const daemon = 'daemon-process';

/** The files to start with `node`. The command has no demo, as that of the package has none. */
export async function bundledPrograms(): Promise<{ readonly command: string; readonly daemon: string }> {
  const dir = await madeOnce('programs', async (made) => {
    // Loaded only now: the bundler is large, and most files find its work done.
    const { bundle, versionedPackageFile } = await import('../../../systemd/package/bundle.ts');
    const app = join(made, 'app');
    await bundle(root, app, { [daemon]: `test/support/kit/${daemon}.ts` });
    await writeFile(join(app, 'package.json'), await versionedPackageFile(root, version()));
    // Native libraries, and what is served to browsers.
    await symlink(join(root, 'node_modules'), join(made, 'node_modules'));
  });
  return { command: join(dir, 'app/kit-connector.mjs'), daemon: join(dir, `app/${daemon}.mjs`) };
}
