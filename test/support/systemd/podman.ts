/** Containers of podman, in a mount namespace of their own, with storage that is thrown away. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { dyingWithUs, peerMissing, program, rootMissing } from '../peers.ts';
import { run } from '../temporary.ts';

/** For `describe.skipIf`, with a printed reason. */
export function podmanMissing(): boolean {
  return (
    rootMissing() || peerMissing('podman', 'buildah', 'crun', 'mmdebstrap', 'nsenter', 'unshare', 'setpriv')
  );
}

/** crun wants one hierarchy of control groups, and where machines have two, the containers here need none of them. */
const place = `
umount --recursive /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup
echo ready
exec sleep infinity
`;

export interface Podman {
  /** Runs it; answers what it printed. */
  readonly run: (...words: readonly string[]) => Promise<string>;
  /** Starts a container beside the network of this machine, as strict as engines can be. */
  readonly start: (name: string, image: string, options: readonly string[]) => Promise<void>;
  /** Runs a command of the image to its end. */
  readonly once: (image: string, options: readonly string[], command: readonly string[]) => Promise<string>;
  /** Of its main process. */
  readonly pidOf: (name: string) => Promise<string>;
  /** Removes all containers and images. */
  readonly stop: () => Promise<void>;
}

/** `dir` is for its storage. */
export async function startPodman(dir: string): Promise<Podman> {
  const [first, ...rest] = [...dyingWithUs(), program('unshare'), '--mount', 'sh', '-ec', place];
  const holder = spawn(first, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(holder, 'exit');
  await once(holder.stdout, 'data');
  const storage = [`--root=${join(dir, 'storage')}`, `--runroot=${join(dir, 'run')}`];
  const inside = ['--target', String(holder.pid), '--mount', '--', program('podman'), ...storage];
  const podman = async (...words: readonly string[]): Promise<string> =>
    (await run('nsenter', ...inside, ...words)).trim();
  // Limits above those of this machine need a right that its root may not have.
  const limits = ['--cgroups=disabled', '--ulimit=nofile=1024:4096', '--ulimit=nproc=1000:1000'];
  const strict = [
    '--read-only',
    '--read-only-tmpfs=false',
    '--cap-drop=all',
    '--security-opt=no-new-privileges',
  ];
  return {
    run: podman,
    async start(name, image, options) {
      await podman(
        'run',
        '--detach',
        '--name',
        name,
        '--network=host',
        ...limits,
        ...strict,
        ...options,
        image,
      );
    },
    once: async (image, options, command) =>
      podman('run', '--rm', '--network=host', ...limits, ...strict, ...options, image, ...command),
    pidOf: async (name) => podman('inspect', '--format={{.State.Pid}}', name),
    async stop() {
      await podman('rm', '--all', '--force', '--volumes', '--time=0');
      await podman('rmi', '--all', '--force');
      holder.kill();
      await ended;
    },
  };
}
