/** The first API key from a file: taken once, by one replica or by several, checked, and never shown. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { addFirstKey, firstKeyOf } from '../../../src/cli/service/first-key.ts';
import { texts } from '../../../src/cli/texts.ts';
import { KeyRing } from '../../../src/cloud/access/keys.ts';
import { texts as cloud_texts } from '../../../src/cloud/texts.ts';
import { scopes } from '../../../src/cloud/scopes.ts';
import { sqlStore } from '../../../src/cloud/store/sql-store.ts';
import { readStandalone } from '../../../src/kit/config/standalone.ts';
import { ConfigInvalid } from '../../../src/platform/errors.ts';
import { texts as file_texts } from '../../../src/platform/texts.ts';
import { recordingLog } from '../../support/recording-log.ts';
import { withDirectory } from '../../support/temporary.ts';
import { onEachDatabase } from '../cloud/each-database.ts';

const [one, other] = [
  'kc_5f1e0c9a77b2_9d3c1f70a4be52e86c1b0f9d7a34e5c2',
  'kc_0123456789ab_q8Zt-kV1xN5_yR2mH7cJ4wL9pD3bF6sA',
];

/** The key of a configuration whose `first_key_file` holds this text. */
async function keyIn(text: string, mode = 0o640) {
  return withDirectory(async (dir) => {
    const file = join(dir, 'service.yaml');
    await writeFile(file, "broker: { url: 'mqtt://127.0.0.1:1883' }\nfirst_key_file: first-key\n");
    await writeFile(join(dir, 'first-key'), text, { mode });
    const read = readStandalone(file, undefined).then((config) => firstKeyOf('service.yaml', config));
    return read.catch((error: unknown) => {
      if (error instanceof ConfigInvalid) return error.faults.join('\n').replaceAll(`${dir}/`, '');
      throw error;
    });
  });
}

describe('first_key_file', () => {
  it.each(['', '\n', '\r\n', ' \n\n'])(
    'may end with %j, as editors, echo and secrets write it',
    async (end) => {
      expect(await keyIn(one + end)).toMatchObject({
        key_id: '5f1e0c9a77b2',
        kits: '*',
        scopes: [...scopes],
      });
    },
  );

  it.each([
    'a password',
    `${one}x`,
    `${one}\n${other}`,
    'kc_000000000000_00000000000000000000000000000000',
    'kc_5f1e0c9a77b2_changemechangemechangemechangeme'.slice(0, 48).replaceAll(/[^_]/gu, 'a'),
  ])('that holds "%s" ends the start with the remedy, and shows nothing of it', async (text) => {
    const fault = await keyIn(text);
    expect(fault).toBe(texts.weak_first_key('service.yaml', 'first-key'));
    expect(fault).not.toContain(text);
  });

  it('that every user may read is refused', async () => {
    expect(await keyIn(one, 0o644)).toContain(`first_key_file: ${file_texts.world_access('first-key')}`);
  });
});

onEachDatabase('the first key', (open) => {
  it('is taken by a database without keys, by several replicas at once too, and lets its holder in', async () => {
    const store = sqlStore(await open());
    const logs = [recordingLog(), recordingLog()];
    const key = await keyIn(one);
    if (typeof key !== 'object') throw new Error(key);
    await Promise.all(logs.map(async (log) => addFirstKey(store, key, log)));
    await addFirstKey(store, key, recordingLog());
    expect((await store.keys()).map(({ key_id }) => key_id)).toEqual([key.key_id]);
    const ring = new KeyRing(store);
    await ring.reload();
    expect(await ring.identify(one)).toMatchObject({ kits: '*', scopes: [...scopes] });
    await expect(ring.identify(`${one.slice(0, -1)}3`)).rejects.toThrow(cloud_texts.no_valid_key);
    expect(JSON.stringify(logs.map((log) => log.lines))).not.toContain(one.slice(16));
  });

  it('does not join others, which is said while it is not one of them, and is missed where there is none', async () => {
    const store = sqlStore(await open());
    const log = recordingLog();
    await addFirstKey(store, undefined, log);
    expect(log.at('warn')).toEqual([texts.no_key_exists]);
    for (const text of [other, one, other]) {
      const key = await keyIn(text);
      if (typeof key === 'object') await addFirstKey(store, key, log);
    }
    expect((await store.keys()).map(({ key_id }) => key_id)).toEqual(['0123456789ab']);
    expect(log.at('warn').slice(1)).toEqual([texts.first_key_unused]);
  });
});
