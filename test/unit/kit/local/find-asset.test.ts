/** Which asset a technician means. */
import { describe, expect, it } from 'vitest';
import { findAsset, isMeant } from '../../../../src/kit/local/find-asset.ts';
import { asset_words_max, assetRequest, taskRequest } from '../../../../src/kit/local/api.ts';

const gate = { id: 'id-1', key: 'onvif:gate', name: 'Gate' };
const mast = { id: 'id-2', key: 'onvif:mast', name: 'Mast' };
const named_as_key = { id: 'id-3', key: 'onvif:roof', name: 'onvif:gate' };

describe('findAsset', () => {
  it.each([['id-2'], ['onvif:mast'], ['Mast'], ['mAST']])('finds an asset by %s', (words) => {
    expect(findAsset([gate, mast], words)).toEqual({ id: 'id-2' });
  });

  it('takes a key before the same text as a name', () => {
    expect(findAsset([named_as_key, gate], 'onvif:gate')).toEqual({ id: gate.id });
  });

  it('refuses a name that several assets have, and names their keys', () => {
    const found = findAsset([gate, { ...mast, name: 'gate' }], 'Gate');
    expect('fault' in found && found.fault).toContain('onvif:gate, onvif:mast');
  });

  it('proposes the closest name or key for a slip', () => {
    const found = findAsset([gate, mast], 'Masst');
    expect('fault' in found && found.fault).toContain('"Mast"');
  });

  it('proposes nothing where there are no assets', () => {
    expect(findAsset([], 'Mast')).toHaveProperty('fault');
  });
});

describe('isMeant', () => {
  it('accepts id, key and name of the asset of a message, and no message without an asset', () => {
    expect(['id-1', 'onvif:gate', 'GATE', 'mast'].map((words) => isMeant(gate, words))).toEqual([
      true,
      true,
      true,
      false,
    ]);
    expect(isMeant(null, 'Gate')).toBe(false);
  });
});

it('refuses longer words for an asset than any name needs', () => {
  const [longest, longer] = [asset_words_max, asset_words_max + 1].map((chars) => 'x'.repeat(chars));
  for (const schema of [assetRequest, taskRequest.omit({ command: true })]) {
    expect(schema.safeParse({ asset: longest }).success).toBe(true);
    expect(schema.safeParse({ asset: longer }).success).toBe(false);
  }
});
