/** What the machines that a package is for are called by Debian, by npm and by the tools of the compiler. */

export interface Target {
  /** Debian's name. */
  readonly architecture: 'amd64' | 'arm64';
  /** npm's and Node.js's name. */
  readonly cpu: 'x64' | 'arm64';
  /** Removes symbols from a binary of this machine. */
  readonly strip: string;
}

export const targets: readonly Target[] = [
  { architecture: 'amd64', cpu: 'x64', strip: 'x86_64-linux-gnu-strip' },
  { architecture: 'arm64', cpu: 'arm64', strip: 'aarch64-linux-gnu-strip' },
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
