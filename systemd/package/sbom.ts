/** `npm run sbom`: the bill of materials of the packages without making them. Options: --arch, --version, --out as of `npm run package`. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { packageVersion, root, sourceTime } from './build.ts';
import { bundle } from './bundle.ts';
import { installFor } from './dependencies.ts';
import { billOfMaterials } from './licences.ts';
import { partsOf } from './parts.ts';
import { targetNamed, targets } from './target.ts';

const { values } = parseArgs({
  options: {
    arch: { type: 'string', multiple: true, default: targets.map(({ architecture }) => architecture) },
    version: { type: 'string' },
    out: { type: 'string', default: join(root, 'dist') },
  },
});
const out = resolve(values.out);
const version = values.version ?? (await packageVersion());
const time = await sourceTime();
await mkdir(out, { recursive: true });
const app = await mkdtemp(join(tmpdir(), 'kit-connector-sbom-'));
try {
  const bundled = await bundle(root, app);
  for (const name of values.arch) {
    const target = targetNamed(name);
    const dependencies = await installFor(target, root, out);
    const { components } = await partsOf({ root, dependencies, bundled }, target);
    const file = join(out, `kit-connector_${version}_${name}.cdx.json`);
    await writeFile(file, billOfMaterials({ version, time, architecture: name }, components));
    process.stdout.write(`${file}\n`);
  }
} finally {
  await rm(app, { recursive: true, force: true });
}
