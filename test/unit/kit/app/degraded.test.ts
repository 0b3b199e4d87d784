/** The sentences by which a kit reports that it is not at its best. */
import { describe, expect, it } from 'vitest';
import { healthReasons } from '../../../../src/kit/app/degraded.ts';
import { failingAsset } from '../../../support/kit/troubles.ts';

const fault = 'rtsp:// would send the password without TLS; change it';
const well = {
  name: 'Yard',
  health: { stream: { state: 'works', reason: null, next_try_at: null } },
} as const;

describe('the sentence about assets that do not deliver something', () => {
  it('names the assets whose stream is withheld, and what to do', () => {
    const assets = [failingAsset('Gate', 'stream', fault), well, failingAsset('Roof', 'stream', fault)];
    expect(healthReasons(assets)).toEqual([`no video of Gate, Roof: ${fault}`]);
  });

  it('stays one sentence however many cameras there are', () => {
    const assets = Array.from({ length: 64 }, (_, index) => failingAsset(`C${index}`, 'stream', fault));
    expect(healthReasons(assets)).toEqual([`no video of C0, C1, C2, C3 and 60 more: ${fault}`]);
  });

  it('is one for each thing and each answer', () => {
    const assets = [failingAsset('Gate', 'events', 'full'), failingAsset('Yard', 'events', 'gone'), well];
    expect(healthReasons(assets)).toEqual(['no events of Gate: full', 'no events of Yard: gone']);
  });

  it('is left out while everything is delivered or not offered', () => {
    const without = { state: 'not_offered', reason: 'is fixed', next_try_at: null } as const;
    expect(healthReasons([well, { name: 'Gate', health: { commands: without } }])).toEqual([]);
  });
});
