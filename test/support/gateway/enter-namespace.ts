/** Moves this thread into a network namespace and back, so that the sockets it opens meanwhile are of that namespace. */
import koffi, { type KoffiFunc } from 'koffi';
import { closeSync, openSync } from 'node:fs';

const clone_newnet = 0x4000_0000;

let setns: KoffiFunc<(fd: number, kind: number) => number> | undefined;

/** Enters the namespace that `ip netns` made under this name; the returned function goes back. Needs root. */
export function enterNamespace(name: string): () => void {
  const home = openSync('/proc/thread-self/ns/net', 'r');
  const there = openSync(`/var/run/netns/${name}`, 'r');
  move(there);
  closeSync(there);
  return () => {
    move(home);
    closeSync(home);
  };
}

function move(fd: number): void {
  setns ??= koffi.load(null).func('int setns(int, int)');
  if (setns(fd, clone_newnet) !== 0) throw new Error(`setns failed with errno ${koffi.errno()}`);
}
