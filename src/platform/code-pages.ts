/**
 * Lets go of the program's own pages: of the 60 MB that a start reads, a running daemon needs half. They stay in the page
 * cache, where the kernel can use them for something else, and those that are needed come back from there.
 */
import { readFile } from 'node:fs/promises';
import type { Libc } from './libc.ts';

/** `MADV_DONTNEED` of madvise(2). */
const dont_need = 4;

export interface Mapping {
  readonly start: bigint;
  readonly bytes: number;
}

/**
 * Of `/proc/PID/smaps` (proc_pid_smaps(5)), the mappings of `file` that hold nothing but what the file holds: private, never
 * written, without a page of their own. Only these can be let go of without losing anything.
 */
export function cleanMappings(smaps: string, file: string): readonly Mapping[] {
  const found: Mapping[] = [];
  let mapping: Mapping | undefined;
  for (const line of smaps.split('\n')) {
    const head = /^([\da-f]+)-([\da-f]+) (\S{4}) \S+ \S+ \S+ *(.*)$/u.exec(line);
    if (head) {
      const [, from = '', to = '', rights = '', path] = head;
      const start = BigInt(`0x${from}`);
      const isOurs = path === file && /^r-[x-]p$/u.test(rights);
      mapping = isOurs ? { start, bytes: Number(BigInt(`0x${to}`) - start) } : undefined;
    } else if (mapping && /^Anonymous: +0 kB$/u.test(line)) {
      found.push(mapping);
    }
  }
  return found;
}

/** Answers how many bytes were mapped there. Rejects where there is no `/proc`. */
export async function letGoOfCode({ madvise }: Pick<Libc, 'madvise'>): Promise<number> {
  const mappings = cleanMappings(await readFile('/proc/self/smaps', 'utf8'), process.execPath);
  let bytes = 0;
  for (const { start, bytes: length } of mappings) {
    if (madvise(start, length, dont_need) === 0) bytes += length;
  }
  return bytes;
}
