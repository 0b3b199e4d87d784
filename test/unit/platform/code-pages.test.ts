/** Pages of the program are let go of only where nothing can be lost with them. */
import { expect, test } from 'vitest';
import { cleanMappings, letGoOfCode } from '../../../src/platform/code-pages.ts';
import { libc } from '../../../src/platform/libc.ts';
import { filePagesMb } from '../../support/process-stats.ts';

/** As the kernel writes it, shortened to the lines that matter. */
const smaps = `00400000-00746000 r--p 00000000 fe:00 123                              /opt/bin/node
Size:               3352 kB
Rss:                1200 kB
Anonymous:             0 kB
0074a000-03044000 r-xp 0034a000 fe:00 123                              /opt/bin/node
Anonymous:             0 kB
06b52000-06b53000 r--p 06751000 fe:00 123                              /opt/bin/node
Anonymous:             4 kB
06b56000-06b7d000 rw-p 06755000 fe:00 123                              /opt/bin/node
Anonymous:             0 kB
7f0000000000-7f0000001000 r--s 00000000 fe:00 123                      /opt/bin/node
Anonymous:             0 kB
7f0000002000-7f0000003000 r-xp 00000000 fe:00 124                      /opt/lib/other.so
Anonymous:             0 kB
7f0000004000-7f0000005000 r--p 00000000 00:00 0 
Anonymous:             0 kB
7ffe00000000-7ffe00021000 rw-p 00000000 00:00 0                        [stack]
Anonymous:            12 kB
VmFlags: rd wr mr mw me gd ac 
`;

test('only mappings of the program that hold nothing of their own are let go of', () => {
  expect(cleanMappings(smaps, '/opt/bin/node')).toEqual([
    { start: 0x400000n, bytes: 0x346000 },
    { start: 0x74a000n, bytes: 0x28fa000 },
  ]);
  expect(cleanMappings(smaps, '/opt/bin/node (deleted)')).toEqual([]);
  expect(cleanMappings('', '/opt/bin/node')).toEqual([]);
});

test('a program goes on without its pages, which come back when they are needed', async () => {
  const functions = await libc();
  const before_mb = await filePagesMb(process.pid);
  expect(await letGoOfCode(functions)).toBeGreaterThan(30_000_000);
  expect(await filePagesMb(process.pid)).toBeLessThan(before_mb);
  expect(new Intl.DateTimeFormat('en', { timeZone: 'Asia/Tokyo', hour: 'numeric' }).format(0)).toBe('9 AM');
});
