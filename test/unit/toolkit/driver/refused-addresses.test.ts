import { describe, expect, it } from 'vitest';
import { logRefused } from '../../../../src/toolkit/driver/refused-addresses.ts';

describe('logRefused', () => {
  function logged() {
    const facts: object[] = [];
    const warn = (about: object): void => void facts.push(about);
    return { facts, refuse: logRefused({ warn }, { camera: 'gate' }) };
  }

  it('logs each address of a device once, with the reason', () => {
    const { facts, refuse } = logged();
    refuse('http://thief/', 'why');
    refuse('http://thief/', 'why');
    expect(facts).toEqual([{ camera: 'gate', address: 'http://thief/', reason: 'why' }]);
  });

  it('bounds the lines and the length of what a device makes up', () => {
    const { facts, refuse } = logged();
    for (let n = 0; n < 100; n += 1) refuse(`http://thief/${n}/${'x'.repeat(100_000)}`, 'why');
    expect(facts).toHaveLength(8);
    expect(JSON.stringify(facts).length).toBeLessThan(4_000);
  });
});
