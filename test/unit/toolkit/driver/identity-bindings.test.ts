/** A device cannot take the place of another by claiming its identity. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { beforeEach, describe, expect, it } from 'vitest';
import { type BoundEntry, IdentityBindings } from '../../../../src/toolkit/driver/identity-bindings.ts';
import { texts } from '../../../../src/toolkit/driver/texts.ts';
import { recordingLog } from '../../../support/recording-log.ts';

const gate = { name: 'Gate', place: '10.0.0.5:80' };
const yard = { name: 'Yard', place: '10.0.0.6:80' };
let log: ReturnType<typeof recordingLog>;
let saved: string | undefined;
beforeEach(() => {
  log = recordingLog();
  saved = undefined;
});
const bindings = (entries: readonly BoundEntry[] = [gate, yard]): IdentityBindings =>
  new IdentityBindings({
    entries,
    saved,
    save: async (text) => {
      saved = text;
    },
    log,
  });

describe('IdentityBindings', () => {
  it('binds an identity to its entry at first sight, also over a restart', async () => {
    expect(bindings().claim(gate, 'camera:a')).toBeUndefined();
    await nextTurn();
    const after = bindings();
    expect(after.claim(yard, 'camera:a')).toMatch(
      /^it is the same device as "Gate" \(camera:a\), or claims to be; remove one/u,
    );
    expect(after.isOthers(yard, 'camera:a')).toBe(true);
    expect(after.claim(gate, 'camera:a')).toBeUndefined();
    expect(after.claim(yard, 'camera:b')).toBeUndefined();
  });

  it('raises one alarm when another device answers, and takes the bound one back', () => {
    const one = bindings();
    one.claim(gate, 'camera:a');
    for (let n = 0; n < 3; n += 1) {
      expect(one.claim(gate, 'camera:c')).toBe(
        'another device answers at this address: camera:c instead of camera:a; if it was replaced, give its entry another name, else check which device answers',
      );
    }
    expect(log.at('error')).toEqual([texts.identity_claimed]);
    expect(one.claim(gate, 'camera:a')).toBeUndefined();
  });

  it('forgets what was bound to an entry that has another name or address now', async () => {
    bindings().claim(gate, 'camera:a');
    await nextTurn();
    const renamed = { ...gate, name: 'Gate 2' };
    expect(bindings([renamed, yard]).claim(renamed, 'camera:c')).toBeUndefined();
    const moved = { ...gate, place: '10.0.0.9:80' };
    expect(bindings([moved, yard]).claim(moved, 'camera:a')).toBeUndefined();
  });

  it('keeps the later list when the disk is slow with the earlier one', async () => {
    const earlier = Promise.withResolvers<void>();
    let writes = 0;
    const slow = new IdentityBindings({
      entries: [gate, yard],
      saved,
      save: async (text) => {
        writes += 1;
        if (writes === 1) await earlier.promise;
        saved = text;
      },
      log,
    });
    slow.claim(gate, 'camera:a');
    slow.claim(yard, 'camera:b');
    await nextTurn();
    earlier.resolve();
    await slow.saved();
    expect(saved).toContain('camera:b');
    expect(bindings().claim(yard, 'camera:a')).toBe(texts.same_device('Gate', 'camera:a'));
  });

  it('logs a limited number of refused claims, whatever a device reports', () => {
    const one = bindings();
    one.claim(gate, 'camera:a');
    for (let n = 0; n < 500; n += 1) one.claim(gate, `camera:x${n}`);
    expect(log.at('error')).toHaveLength(32);
  });

  it.each(['', '{', '[{"name":1}]', '{"a":1}'])('starts over with a file that holds %j', (text) => {
    saved = text;
    expect(bindings().claim(gate, 'camera:a')).toBeUndefined();
  });
});
