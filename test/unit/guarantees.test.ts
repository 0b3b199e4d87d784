import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { faultsOf, readGuarantees } from '../support/house/guarantees.ts';

const folder = join(import.meta.dirname, '..');
const read = (file: string): string | undefined => {
  const path = join(folder, file);
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
};

describe('The page of guarantees', () => {
  it('names for each guarantee tests that exist', () => {
    const pages = [
      'guarantees.md',
      'guarantees-devices.md',
      'guarantees-drones.md',
      'guarantees-security.md',
    ].map((page) => readFileSync(join(folder, page), 'utf8'));
    const guarantees = pages.flatMap((page) => readGuarantees(page));
    expect(guarantees.length).toBeGreaterThan(120);
    expect(faultsOf(guarantees, read)).toEqual([]);
  });
});
