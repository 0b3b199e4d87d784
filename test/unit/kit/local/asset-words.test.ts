/** The words for an asset, which are compared with all names where none fits: 256 kB took 430 ms of the event loop. */
import { expect, it } from 'vitest';
import { asset_words_max, assetRequest, taskRequest } from '../../../../src/kit/local/api.ts';

it('refuses longer words for an asset than any name needs', () => {
  const [longest, longer] = [asset_words_max, asset_words_max + 1].map((chars) => 'x'.repeat(chars));
  for (const schema of [assetRequest, taskRequest.omit({ command: true })]) {
    expect(schema.safeParse({ asset: longest }).success).toBe(true);
    expect(schema.safeParse({ asset: longer }).success).toBe(false);
  }
});
