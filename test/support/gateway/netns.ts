/** A network namespace of its own, so that what passes its loopback is the measured traffic and nothing else. */
import { readFile } from 'node:fs/promises';
import { program } from '../peers.ts';
import { run } from '../temporary.ts';

export interface Namespace {
  /** Put before a command line to run it inside. */
  readonly prefix: readonly string[];
}

/** Runs `fn` with a fresh namespace whose loopback looks like an Ethernet link; removes it afterwards. Needs root. */
export async function withNamespace<T>(fn: (namespace: Namespace) => Promise<T>): Promise<T> {
  const name = `kc-${process.pid}-${Math.floor(performance.now())}`;
  await run('ip', 'netns', 'add', name);
  try {
    // The loopback would carry 64 kB in one packet: with segmentation off it carries what a WAN would.
    const ethernet = ['mtu', '1500', 'gso_max_segs', '1', 'gso_max_size', '1500'];
    await run('ip', '-n', name, 'link', 'set', 'lo', 'up', ...ethernet);
    return await fn({ prefix: [program('ip'), 'netns', 'exec', name] });
  } finally {
    await run('ip', 'netns', 'del', name);
  }
}

/** Each packet on the loopback is counted with an Ethernet header that a WAN would not have. */
const ethernet_header_bytes = 14;

/** IP bytes that passed the loopback of the namespace in which process `pid` lives, both directions, since it was made. */
export async function loopbackBytes(pid: number): Promise<number> {
  const table = await readFile(`/proc/${pid}/net/dev`, 'utf8');
  const line = table.split('\n').find((row) => row.trim().startsWith('lo:'));
  const counters = (line ?? '').replace('lo:', '').trim().split(/\s+/).map(Number);
  const [sent_bytes, sent_packets] = [counters[8], counters[9]];
  if (sent_bytes === undefined || sent_packets === undefined) throw new Error('the loopback is not listed');
  return sent_bytes - ethernet_header_bytes * sent_packets;
}
