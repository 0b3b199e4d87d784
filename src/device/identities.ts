/** The identities that the entries of a driver are bound to, kept in its state folder. */
import type { FeedSet } from '../contract/feeds.ts';
import type { DriverHost } from '../driver/driver.ts';
import { type BoundEntry, IdentityBindings } from '../driver/identity-bindings.ts';
import { replaceFile } from '../platform/replace-file.ts';
import { readStateText } from './state-file.ts';

/** Opens the bindings of earlier starts; they are empty without a readable file. */
export async function openIdentities(
  { stateFile, log }: Pick<DriverHost<FeedSet>, 'stateFile' | 'log'>,
  entries: readonly BoundEntry[],
): Promise<IdentityBindings> {
  const file = stateFile('identities.json');
  const saved = await readStateText(file);
  return new IdentityBindings({ entries, saved, save: async (text) => replaceFile(file, text), log });
}
