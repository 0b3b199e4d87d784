/** Container images of gateway and service: their packages on the few packages of Debian that they need, without systemd. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { runTool } from './command-line.ts';
import type { Deb } from './deb.ts';
import { gateway, type Package, runtime, service } from './packages.ts';

interface Image {
  readonly of: Package;
  /** Fixed, so that the owner of a volume stays the same; above what Debian and Kubernetes give to others. */
  readonly uid: number;
  /** What it writes, so that the root file system may be read-only. */
  readonly volumes: readonly string[];
  readonly ports: readonly number[];
}

/** What `onStep` is told. */
export const image_steps = 3;

export const images: readonly Image[] = [
  {
    of: gateway,
    uid: 10_001,
    volumes: ['/var/lib/kit-connector', '/run/kit-connector'],
    ports: [],
  },
  { of: service, uid: 10_002, volumes: ['/var/lib/kit-connector-service'], ports: [8080] },
];

/** No registry: with a plain name an engine would ask Docker Hub for the image of a stranger when it has none. */
const registry = 'localhost';

const suite = 'bookworm';
/** Beside what the packages name: the shell of `kit-connector`, what a library asks through it, and what `service enrol` makes certificates with. */
const base = ['base-files', 'ca-certificates', 'dash', 'grep', 'netbase', 'openssl'];
const needed = [...base, 'libc6', 'libgcc-s1', 'libstdc++6'];
/** What people read, and what installs packages. */
const left_out = ['doc', 'info', 'lintian', 'locale', 'man'].map((name) => `usr/share/${name}`);
const of_apt = ['etc/apt', 'var/cache/apt', 'var/lib/apt', 'var/lib/dpkg'];

export interface ImageSources {
  /** The packages, as `buildPackages` made them. */
  readonly debs: readonly string[];
  readonly root: string;
  readonly revision: string;
  readonly onStep?: (name: string) => void;
}

/**
 * Makes the images for one kind of machine, as archives that `docker load` and `podman load` take, and answers their paths.
 * The format is Docker's, since that of OCI has no health check (opencontainers/image-spec#749, containers/buildah#2388).
 * Debian's packages are unpacked and not configured: nothing of the other machine has to run. Needs root.
 */
export async function buildImages(
  { debs, root, revision, onStep = () => undefined }: ImageSources,
  out: string,
  deb: Deb,
): Promise<readonly string[]> {
  const work = await mkdtemp(join(tmpdir(), 'kit-connector-images-'));
  try {
    onStep('base image');
    const debian = join(work, 'debian');
    if (process.getuid?.() !== 0)
      throw new Error('images are made by root alone: mmdebstrap and buildah set owners of files');
    const options = [
      '--variant=extract',
      `--architectures=${deb.architecture}`,
      `--include=${needed.join(',')}`,
    ];
    await runTool('mmdebstrap', ['--quiet', ...options, '--skip=cleanup/apt', suite, debian]);
    await prepare(debian);
    const files: string[] = [];
    for (const image of images) {
      onStep(`image ${image.of.name}`);
      const tree = join(work, image.of.name);
      await runTool('cp', ['--archive', debian, tree]);
      for (const file of debs)
        if ([runtime, image.of].some(({ name }) => file.includes(`/${name}_`))) await addPackage(file, tree);
      await addUser(image, tree);
      const unit = await readFile(join(root, `systemd/${image.of.name}.service`), 'utf8');
      files.push(await commit(image, { tree, unit, revision, work }, out, deb));
      await rm(tree, { recursive: true });
    }
    return files;
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** What the scripts of Debian's packages would do, and no more than that. */
async function prepare(tree: string): Promise<void> {
  const archives = join(tree, 'var/cache/apt/archives');
  const packages = (await readdir(archives)).filter((name) => name.endsWith('.deb'));
  const controls = await Promise.all(packages.map(async (name) => controlOf(join(archives, name))));
  const licences = join(tree, 'usr/share/doc');
  const kept = await Promise.all(
    (await readdir(licences)).map(async (name) => {
      const file = join(licences, name, 'copyright');
      return { name, text: await readFile(file, 'utf8').catch(() => undefined) };
    }),
  );
  for (const dir of [...left_out, ...of_apt]) await rm(join(tree, dir), { recursive: true, force: true });
  for (const { name, text } of kept)
    if (text !== undefined) await write(join(licences, name, 'copyright'), text);
  for (const control of controls) await writeControl(tree, control);
  const authorities = join(tree, 'usr/share/ca-certificates/mozilla');
  const pems = (await readdir(authorities))
    .toSorted()
    .map(async (name) => readFile(join(authorities, name), 'utf8'));
  await write(join(tree, 'etc/ssl/certs/ca-certificates.crt'), (await Promise.all(pems)).join(''));
}

async function addPackage(file: string, tree: string): Promise<void> {
  await runTool('dpkg-deb', ['--extract', file, tree]);
  await writeControl(tree, await controlOf(file));
}

async function controlOf(file: string): Promise<string> {
  return runTool('dpkg-deb', ['--field', file]);
}

/** Where scanners look for the packages of an image without dpkg. */
async function writeControl(tree: string, control: string): Promise<void> {
  const [, name = ''] = /^Package: (\S+)$/mu.exec(control) ?? [];
  await write(join(tree, 'var/lib/dpkg/status.d', name), control);
}

/** A new volume gets the owner of the directory that it is mounted on. */
async function addUser({ of: { name }, uid, volumes }: Image, tree: string): Promise<void> {
  const home = volumes[0] ?? '/';
  const nologin = '/usr/sbin/nologin';
  await write(
    join(tree, 'etc/passwd'),
    `root:x:0:0:root:/root:${nologin}\n${name}:x:${uid}:${uid}::${home}:${nologin}\n`,
  );
  await write(join(tree, 'etc/group'), `root:x:0:\ndialout:x:20:\n${name}:x:${uid}:\n`);
  for (const dir of [...volumes, `/etc/${name}`])
    await mkdir(join(tree, dir), { recursive: true, mode: 0o750 });
  await runTool('chown', [`${uid}:${uid}`, ...volumes.map((dir) => join(tree, dir))]);
  await runTool('chown', [`0:${uid}`, join(tree, `etc/${name}`)]);
}

interface Content {
  readonly tree: string;
  /** The unit of systemd: it knows how the program is run. */
  readonly unit: string;
  readonly revision: string;
  readonly work: string;
}

async function commit(
  { of, uid, volumes, ports }: Image,
  { tree, unit, revision, work }: Content,
  out: string,
  { version, architecture, time, compression }: Deb,
): Promise<string> {
  const storage = [
    `--root=${join(work, 'storage')}`,
    `--runroot=${join(work, 'run')}`,
    '--storage-driver=vfs',
  ];
  const buildah = async (...words: readonly string[]): Promise<string> =>
    (await runTool('buildah', [...storage, ...words])).trim();
  const container = await buildah('from', '--arch', architecture, 'scratch');
  await runTool('cp', ['--archive', `${tree}/.`, await buildah('mount', container)]);
  await buildah('umount', container);
  const { program, command, environment } = runOf(unit);
  const [, config = ''] = /--config (\S+)$/u.exec(command.join(' ')) ?? [];
  const variables = [
    'PATH=/usr/sbin:/usr/bin:/sbin:/bin',
    // Passwords and certificates of the broker by the names that systemd gives them: mqtt-password, mqtt-ca and so on.
    'CREDENTIALS_DIRECTORY=/run/secrets',
    // Of SQLite and `service enrol`; /tmp may be read-only.
    `TMPDIR=${volumes[0]}`,
    ...environment,
  ];
  const labels = {
    title: of.name,
    description: of.description.split('\n')[0],
    version,
    revision,
    created: time.toISOString(),
    licenses: 'MIT',
    'base.name': `debian:${suite}`,
  };
  const settings: Readonly<Record<string, string | readonly (string | number)[]>> = {
    arch: architecture,
    os: 'linux',
    user: `${uid}:${uid}`,
    workingdir: '/',
    entrypoint: JSON.stringify(program),
    cmd: command.join(' '),
    'stop-signal': 'SIGTERM',
    healthcheck: ['CMD', ...program, 'health', '--config', config].join(' '),
    'healthcheck-interval': '30s',
    'healthcheck-timeout': '10s',
    'healthcheck-start-period': '60s',
    'healthcheck-retries': '3',
    env: variables,
    volume: volumes,
    port: ports,
    label: Object.entries(labels).map(([key, value]) => `org.opencontainers.image.${key}=${value}`),
  };
  const words = Object.entries(settings).flatMap(([name, value]) =>
    [value].flat().flatMap((each) => [`--${name}`, String(each)]),
  );
  await buildah('config', ...words, container);
  const file = join(out, `${of.name}_${version}_${architecture}.tar`);
  await rm(file, { force: true });
  const seconds = String(Math.floor(time.getTime() / 1000));
  const archive = `docker-archive:${file}:${registry}/${of.name}:${tagOf(version)}`;
  await buildah(
    'commit',
    '--quiet',
    '--format',
    'docker',
    '--timestamp',
    seconds,
    '--rm',
    container,
    archive,
  );
  if (compression === 'none') return file;
  await runTool('gzip', ['--force', '--no-name', file]);
  return `${file}.gz`;
}

/** Tags know no `~` and no `+`: https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pulling-manifests */
export function tagOf(version: string): string {
  return version.replaceAll(/[^\w.-]/gu, '-');
}

/** The lines of the unit that say how the program is run; its cache belongs to no image. */
function runOf(unit: string): {
  readonly program: readonly string[];
  readonly command: readonly string[];
  readonly environment: readonly string[];
} {
  const words = /^ExecStart=(.*)$/mu.exec(unit)?.[1]?.split(' ') ?? [];
  const entry = words.findIndex((word) => word.endsWith('.mjs')) + 1;
  const environment = [...unit.matchAll(/^Environment=(.*)$/gmu)].map(([, value = '']) => value);
  return {
    program: words.slice(0, entry),
    command: words.slice(entry),
    environment: environment.filter((value) => !value.startsWith('NODE_COMPILE_CACHE=')),
  };
}

async function write(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}
