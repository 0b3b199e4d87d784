/** Lays out what the package installs, file by file. */
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
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
import { partsOf, runtimeDir } from './parts.ts';
import { leadByOneFile, program_dir } from './program-dir.ts';
import type { Target } from './target.ts';

const doc_dir = 'usr/share/doc/kit-connector';

/** What is copied as it is: from the repository, to the system. */
const plain_files = [
  ['systemd/kit-connector.service', 'lib/systemd/system/kit-connector.service'],
  ['systemd/kit-connector-service.service', 'lib/systemd/system/kit-connector-service.service'],
  ['systemd/kit-connector.sysusers', 'usr/lib/sysusers.d/kit-connector.conf'],
  ['systemd/kit-connector.tmpfiles', 'usr/lib/tmpfiles.d/kit-connector.conf'],
  ['systemd/kit-connector.sysctl', 'usr/lib/sysctl.d/50-kit-connector.conf'],
  ['systemd/kit-connector.polkit.rules', 'usr/share/polkit-1/rules.d/50-kit-connector.rules'],
  ['systemd/config.yaml', 'usr/share/kit-connector/config.yaml'],
  ['src/kit/config/config.schema.json', 'usr/share/kit-connector/config.schema.json'],
  ['systemd/grafana-dashboard.json', 'usr/share/kit-connector/grafana-dashboard.json'],
  ['systemd/grafana/fleet-dashboard.json', 'usr/share/kit-connector/grafana/fleet-dashboard.json'],
  ['systemd/grafana/datasource.yaml', 'usr/share/kit-connector/grafana-provisioning/datasource.yaml'],
  ['systemd/grafana/dashboards.yaml', 'usr/share/kit-connector/grafana-provisioning/dashboards.yaml'],
  ['systemd/alerts.yaml', 'usr/share/kit-connector/alerts.yaml'],
  ['systemd/broker/mosquitto.conf', 'usr/share/kit-connector/broker/mosquitto.conf'],
  ['systemd/broker/mosquitto.acl', 'usr/share/kit-connector/broker/mosquitto.acl'],
  ['systemd/broker/emqx.conf', 'usr/share/kit-connector/broker/emqx.conf'],
  ['systemd/broker/emqx-acl.conf', 'usr/share/kit-connector/broker/emqx-acl.conf'],
  ['systemd/proxy/nginx.conf', 'usr/share/kit-connector/proxy/nginx.conf'],
  ['systemd/proxy/haproxy.cfg', 'usr/share/kit-connector/proxy/haproxy.cfg'],
  ['systemd/database/patroni.yml', 'usr/share/kit-connector/database/patroni.yml'],
  ['systemd/database/haproxy.cfg', 'usr/share/kit-connector/database/haproxy.cfg'],
  ['systemd/package/debian/kit-connector.sh', 'usr/bin/kit-connector'],
  ['systemd/package/debian/lintian-overrides', 'usr/share/lintian/overrides/kit-connector'],
] as const;

export interface Sources {
  readonly root: string;
  /** For libraries of the lockfile; kept between builds. */
  readonly cache: string;
  /** Told of each step as it begins. */
  readonly onStep?: (step: Step) => void;
}

/** What takes time, in this order; then the tree is packed. */
export const steps = ['dependencies', 'program', 'libraries', 'documents'] as const;
export type Step = (typeof steps)[number];

/** Fills the empty directory `tree`. */
export async function layOut(
  tree: string,
  { root, cache, onStep = () => undefined }: Sources,
  target: Target,
  deb: Deb,
): Promise<void> {
  onStep('dependencies');
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
  for (const [from, to] of plain_files) await place(tree, to, await readFile(join(root, from)));
  await writeDocuments(tree, root, components, deb);
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
  const program = buildProgram(
    silentShell,
    () => undefined,
    () => undefined,
  );
  const kit: unknown = JSON.parse(await readFile(join(root, 'src/kit/config/config.schema.json'), 'utf8'));
  const schemas = { kit, service: standaloneJsonSchema() };
  const licence = await readFile(join(root, 'LICENSE'), 'utf8');
  await place(tree, 'usr/share/man/man1/kit-connector.1.gz', packed(commandPage(program, deb)));
  await place(tree, 'usr/share/man/man5/kit-connector.yaml.5.gz', packed(configPage(schemas, deb)));
  await place(tree, 'usr/share/bash-completion/completions/kit-connector', completionScript(program));
  await place(tree, 'usr/share/zsh/vendor-completions/_kit-connector', zshCompletion(program));
  await place(tree, 'usr/share/fish/vendor_completions.d/kit-connector.fish', fishCompletion(program));
  const changes = await readFile(join(root, 'CHANGELOG.md'), 'utf8');
  await place(tree, `${doc_dir}/CHANGELOG.md.gz`, packed(changes));
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
