import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { machineMark } from '../../../src/platform/machine-mark.ts';

test('the mark differs between machines, does not contain the id, and is missing without one', () => {
  const dir = mkdtempSync(join(tmpdir(), 'kit-connector-mark-'));
  try {
    const file = join(dir, 'machine-id');
    const markOf = (text: string): string | undefined => {
      writeFileSync(file, text);
      return machineMark(file);
    };
    const [a, b] = ['a'.repeat(32), 'b'.repeat(32)];
    expect(markOf(`${a}\n`)).toBe(markOf(a));
    expect(markOf(a)).not.toBe(markOf(b));
    expect(markOf(a)).not.toContain(a);
    expect(markOf('uninitialized\n')).toBeUndefined();
    expect(markOf('')).toBeUndefined();
    expect(machineMark(join(dir, 'none'))).toBeUndefined();
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
