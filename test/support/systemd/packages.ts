/** Packages as the tests of whole machines install them. */
import { copyFile, cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildPackages, type BuildOptions, root, sourceTime } from '../../../systemd/package/build.ts';
import { writeDeb } from '../../../systemd/package/deb.ts';
import { gateway, packages, runtime } from '../../../systemd/package/packages.ts';
import { layOut } from '../../../systemd/package/tree.ts';

/** Those of a gateway: the program and what starts it. */
export async function buildGateway(options: BuildOptions): Promise<readonly string[]> {
  const built = await buildPackages(options);
  return packages.flatMap((each, nth) => ([runtime, gateway].includes(each) ? [built[nth] ?? ''] : []));
}

/** The one package of before the split, with the program of today: its scripts and its unit of the service for many kits. */
export async function buildSinglePackage({ target, out, version = '0.1.0' }: BuildOptions): Promise<string> {
  const time = await sourceTime();
  const deb = { version, architecture: target.architecture, time, compression: 'none' } as const;
  const dir = await mkdtemp(join(tmpdir(), 'kit-connector-single-'));
  try {
    await layOut(dir, { root, cache: out }, target, deb);
    const tree = join(dir, 'single');
    await mkdir(tree);
    for (const { name } of packages) await cp(join(dir, name), tree, { recursive: true });
    const debian = join(import.meta.dirname, '../../systemd/single-package');
    const unit = 'kit-connector-service.service';
    await copyFile(join(debian, unit), join(tree, 'lib/systemd/system', unit));
    for (const file of ['sysusers.d', 'tmpfiles.d'])
      await rm(join(tree, 'usr/lib', file, 'kit-connector-service.conf'));
    const Depends = String(runtime.control['Depends']);
    const control = { Depends, Recommends: 'ca-certificates, polkitd | policykit-1' };
    const what = { ...gateway, control, scripts: ['postinst', 'prerm', 'postrm'] };
    return await writeDeb(what, { tree, debian }, out, deb);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
