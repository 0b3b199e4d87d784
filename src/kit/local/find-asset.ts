/** Finds the asset that a technician means by an id, a key or a name. */
import { closest } from 'fastest-levenshtein';

interface Named {
  readonly id: string;
  readonly key: string;
  readonly name: string;
}

/** Ids and keys count before names; a name, in any case, must fit one asset only. */
export function findAsset(
  assets: readonly Named[],
  words: string,
): { readonly id: string } | { readonly fault: string } {
  const exact = assets.find(({ id, key }) => id === words || key === words);
  if (exact) return { id: exact.id };
  const named = assets.filter(({ name }) => isSame(name, words));
  const [only] = named;
  if (named.length > 1) {
    return {
      fault: `${named.length} assets are named "${words}"; use a key: ${named.map(({ key }) => key).join(', ')}`,
    };
  }
  if (only) return { id: only.id };
  if (assets.length === 0) return { fault: `there is no asset "${words}"; this kit has no assets yet` };
  const guess = closest(
    words,
    assets.flatMap(({ key, name }) => [key, name]),
  );
  return {
    fault: `there is no asset "${words}"; did you mean "${guess}"? (kit-connector status lists them)`,
  };
}

/** Whether a message is about the asset that is meant by these words. */
export function isMeant(asset: Named | null, words: string): boolean {
  return asset !== null && (asset.id === words || asset.key === words || isSame(asset.name, words));
}

function isSame(name: string, words: string): boolean {
  return name.toLowerCase() === words.toLowerCase();
}
