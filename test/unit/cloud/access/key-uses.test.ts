/** When an API key was used last is kept, so that one that nobody needs is found. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Gate } from '../../../../src/cloud/access/gate.ts';
import { KeyRing } from '../../../../src/cloud/access/keys.ts';
import { makeKey } from '../../../../src/cloud/principal.ts';
import { openSqlite } from '../../../../src/cloud/sql/sqlite.ts';
import { sqlStore, type Store } from '../../../../src/cloud/store/sql-store.ts';

let store: Store;
beforeEach(() => {
  store = sqlStore(openSqlite(':memory:'));
});
afterEach(async () => store.close());

const rights = { label: 'ops', scopes: ['read'], kits: '*', expires_ms: null } as const;

describe('the last use of a key', () => {
  it('is unknown at first, and kept once it was used, by key or by session', async () => {
    const [one, two] = [makeKey(rights, 1), makeKey(rights, 2)];
    await store.addKey(one.key);
    await store.addKey(two.key);
    const keys = new KeyRing(store);
    await keys.reload();
    const from_ms = Date.now();
    await keys.identify(one.text);
    await keys.writeUses();
    const used = async () => (await store.keys()).map(({ used_ms }) => used_ms);
    expect(await used()).toEqual([expect.any(Number), null]);
    expect((await used())[0]).toBeGreaterThanOrEqual(from_ms);
    keys.principal(two.key.key_id);
    await keys.writeUses();
    expect(await used()).toEqual([expect.any(Number), expect.any(Number)]);
  });

  it('is not that of a wrong key, never goes back, and goes with the key', async () => {
    const { key, text } = makeKey(rights, 1);
    await store.addKey(key);
    const keys = new KeyRing(store);
    await keys.reload();
    await expect(keys.identify(`${text.slice(0, -1)}!`)).rejects.toThrow('send a valid key');
    await keys.writeUses();
    expect((await store.keys())[0]?.used_ms).toBeNull();
    await store.noteUses([[key.key_id, 5_000]]);
    await store.noteUses([[key.key_id, 4_000]]);
    expect((await store.keys())[0]?.used_ms).toBe(5_000);
    await store.revokeKey(key.key_id);
    await store.addKey(key);
    expect((await store.keys())[0]?.used_ms).toBeNull();
  });
});

it('A new key is known to all requests that a client begins with', async () => {
  const keys = new KeyRing(store);
  await keys.reload();
  const { key, text } = makeKey(rights, 1);
  await store.addKey(key);
  const asked = [keys.identify(text), keys.identify(text), keys.identify(text)];
  for (const { key_id } of await Promise.all(asked)) expect(key_id).toBe(key.key_id);
});

it.each([
  ['revoked', 'DELETE FROM api_keys', false],
  ['left without a scope', `UPDATE api_keys SET scopes = '["read"]'`, false],
  ['left without a kit', `UPDATE api_keys SET kits = '["a"]'`, false],
  ['given more kits', `UPDATE api_keys SET kits = '["a","b","c"]'`, true],
  ['given all kits', `UPDATE api_keys SET kits = '"*"'`, true],
])('What is open with a key that is %s in the database goes on or ends', async (_, statement, goesOn) => {
  const database = openSqlite(':memory:');
  const own = sqlStore(database);
  const { key, text } = makeKey({ ...rights, scopes: ['read', 'commands'], kits: ['a', 'b'] }, 1);
  await own.addKey(key);
  const keys = new KeyRing(own);
  const gate = new Gate({ keys, store: own, hosts: [], isSecure: false });
  const asker = { headers: {}, address: '127.0.0.1' };
  const principal = await gate.byKey(text, asker);
  expect(await gate.isStillKnown(principal, asker)).toBe(true);
  await database.all(statement);
  await keys.reload();
  expect(await gate.isStillKnown(principal, asker)).toBe(goesOn);
  await own.close();
});
