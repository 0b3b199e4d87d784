/** What the machines that a package is for are called by Debian, by npm and by the tools of the compiler. */

import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export interface Target {
  /** Debian's name. */
  readonly architecture: 'amd64' | 'arm64';
  /** npm's and Node.js's name. */
  readonly cpu: 'x64' | 'arm64';
  /** Removes symbols from a binary of this machine. */
  readonly strip: string;
  /** The Debian package that brings it. */
  readonly strip_package: string;
}

export const targets: readonly Target[] = [
  {
    architecture: 'amd64',
    cpu: 'x64',
    strip: 'x86_64-linux-gnu-strip',
    strip_package: 'binutils-x86-64-linux-gnu',
  },
  {
    architecture: 'arm64',
    cpu: 'arm64',
    strip: 'aarch64-linux-gnu-strip',
    strip_package: 'binutils-aarch64-linux-gnu',
  },
];

/** The target with this name of Debian's; throws when there is none. */
export function targetNamed(architecture: string): Target {
  const found = targets.find((target) => target.architecture === architecture);
  if (!found) {
    throw new Error(
      `no package is made for "${architecture}"; the architectures are ${targets.map((target) => target.architecture).join(', ')}`,
    );
  }
  return found;
}

export interface Tool {
  readonly tool: string;
  readonly debian: string;
}

/** Beside those of packages. */
export const image_tools: readonly Tool[] = ['buildah', 'mmdebstrap'].map((tool) => ({ tool, debian: tool }));

/** The programs that packages for these targets take, `more` beside them, and that no folder of `path` has. */
export function missingTools(
  wanted: readonly Target[],
  path: string,
  more: readonly Tool[] = [],
): readonly Tool[] {
  const tools: readonly Tool[] = [
    { tool: 'xz', debian: 'xz-utils' },
    ...wanted.map(({ strip, strip_package }) => ({ tool: strip, debian: strip_package })),
    ...more,
  ];
  const dirs = path.split(delimiter);
  return tools.filter(({ tool }) => !dirs.some((dir) => existsSync(join(dir, tool))));
}
