/** Lays out what the packages install, file by file. */
import { copyFile, glob, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { buildProgram } from '../../src/cli/program.ts';
import { standaloneJsonSchema } from '../../src/kit/config/standalone.ts';
import { bundle, versionedPackageFile } from './bundle.ts';
import { runTool } from './command-line.ts';
import { completionScript, fishCompletion, zshCompletion } from './completion.ts';
import { changelog, type Deb } from './deb.ts';
import { copyLibrary, installFor } from './dependencies.ts';
import { billOfMaterials, type Component, copyrightFile, longTerms } from './licences.ts';
import { commandPage, configPage } from './manual.ts';
import { type Package, packages, runtime } from './packages.ts';
import { partsOf, runtimeDir } from './parts.ts';
import { leadByOneFile, program_dir } from './program-dir.ts';
import type { Target } from './target.ts';

export interface Sources {
  readonly root: string;
  /** For libraries of the lockfile; kept between builds. */
  readonly cache: string;
  /** Told of each step as it begins. */
  readonly onStep?: (step: Step) => void;
}

/** What is read where there is no network, in the folders of the sources: the pages link to each other. */
const pages = [
  'README.md',
  'src/help/*.{md,png}',
  'src/{kit/config,cloud,contract}/README.md',
  'drivers/*/README.md',
  'systemd/README.md',
  'systemd/broker/clouds.md',
];

/** What takes time, in this order; then the tree is packed. */
export const steps = ['dependencies', 'program', 'libraries', 'documents'] as const;
export type Step = (typeof steps)[number];

/** Fills the empty directory `trees`: below it one for each package, by its name. */
export async function layOut(
  trees: string,
  { root, cache, onStep = () => undefined }: Sources,
  target: Target,
  deb: Deb,
): Promise<void> {
  onStep('dependencies');
  const tree = join(trees, runtime.name);
  const dependencies = await installFor(target, root, cache);
  const app = join(tree, program_dir, 'app');
  onStep('program');
  const bundled = await bundle(root, app);
  await writeFile(join(app, 'package.json'), await versionedPackageFile(root, deb.version));

  onStep('libraries');
  const { libraries, components } = await partsOf({ root, dependencies, bundled }, target);
  for (const dir of libraries)
    await copyLibrary(join(dependencies, dir), join(tree, program_dir, dir), target);
  const node = join(tree, program_dir, 'bin/node');
  await mkdir(dirname(node), { recursive: true });
  await copyFile(join(dependencies, runtimeDir(target), 'bin/node'), node);
  await stripBinaries(tree, target);
  await leadByOneFile(tree);

  onStep('documents');
  await writeManuals(tree, root, deb);
  await writeBill(tree, components, deb);
  const licence = await readFile(join(root, 'LICENSE'), 'utf8');
  for (const each of packages) {
    const into = join(trees, each.name);
    for (const [from, to] of each.files) await place(into, to, await readFile(join(root, from)));
    await place(into, `${docDir(each)}/changelog.gz`, packed(changelog(each.name, deb)));
    const inside = each === runtime ? components : [];
    await place(into, `${docDir(each)}/copyright`, copyrightFile(licence, inside));
  }
}

function docDir({ name }: Package): string {
  return `usr/share/doc/${name}`;
}

async function stripBinaries(tree: string, { strip }: Target): Promise<void> {
  const found = await runTool('find', [tree, '-name', '*.node', '-o', '-path', '*/bin/node']);
  for (const file of found.split('\n').filter(Boolean)) await runTool(strip, ['--strip-unneeded', file]);
}

async function writeManuals(tree: string, root: string, deb: Deb): Promise<void> {
  const program = buildProgram(
    silentShell,
    () => undefined,
    () => undefined,
  );
  const kit: unknown = JSON.parse(await readFile(join(root, 'src/kit/config/config.schema.json'), 'utf8'));
  const schemas = { kit, service: standaloneJsonSchema() };
  await place(tree, 'usr/share/man/man1/kit-connector.1.gz', packed(commandPage(program, deb)));
  await place(tree, 'usr/share/man/man5/kit-connector.yaml.5.gz', packed(configPage(schemas, deb)));
  await place(tree, 'usr/share/bash-completion/completions/kit-connector', completionScript(program));
  await place(tree, 'usr/share/zsh/vendor-completions/_kit-connector', zshCompletion(program));
  await place(tree, 'usr/share/fish/vendor_completions.d/kit-connector.fish', fishCompletion(program));
  const changes = await readFile(join(root, 'CHANGELOG.md'), 'utf8');
  await place(tree, `${docDir(runtime)}/CHANGELOG.md.gz`, packed(changes));
  for await (const page of glob(pages, { cwd: root }))
    await place(tree, `${docDir(runtime)}/${page}`, await readFile(join(root, page)));
}

async function writeBill(tree: string, components: readonly Component[], deb: Deb): Promise<void> {
  for (const [name, text] of longTerms(components))
    await place(tree, `${docDir(runtime)}/${name}`, packed(text));
  await place(tree, `${docDir(runtime)}/kit-connector.cdx.json`, billOfMaterials(deb, components));
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
