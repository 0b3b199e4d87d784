import { describe, expect, it } from 'vitest';
import { PacketIds } from '../../../src/mqtt/publisher.ts';

describe('PacketIds', () => {
  it('are never assigned twice while in use, also after the numbers wrap', () => {
    const ids = new PacketIds();
    const late = ids.allocate();
    for (let n = 0; n < 70_000; n += 1) {
      const id = ids.allocate();
      expect(id).not.toBe(late);
      if (id !== null) ids.deallocate(id);
    }
  });

  it('run out at 65,535 and start at 1', () => {
    const ids = new PacketIds();
    const all = new Set(Array.from({ length: 65_535 }, () => ids.allocate()));
    expect(all.size).toBe(65_535);
    expect(all.has(0)).toBe(false);
    expect(ids.allocate()).toBeNull();
    ids.deallocate(7);
    expect(ids.allocate()).toBe(7);
  });
});
