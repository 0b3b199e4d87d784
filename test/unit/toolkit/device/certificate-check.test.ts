/** Which certificate of a device is trusted. */
import { describe, expect, it } from 'vitest';
import { bareFingerprint, certificateCheck } from '../../../../src/toolkit/device/certificate-check.ts';
import { texts } from '../../../../src/toolkit/device/texts.ts';
import { DeviceRejected } from '../../../../src/platform/errors.ts';
import { recordingLog } from '../../../support/recording-log.ts';

function start(configured?: string) {
  const facts: { fingerprint?: string | undefined } = {};
  const log = recordingLog();
  const change = async (next: typeof facts): Promise<void> => {
    Object.assign(facts, next);
  };
  const memory = { facts, change };
  return { facts, log, check: certificateCheck({ configured, memory, address: '10.0.0.7:443', log }) };
}

describe('certificateCheck', () => {
  it('pins the certificate of the first contact and rejects any other afterwards', async () => {
    const { facts, log, check } = start();
    await check('AA:BB');
    await check('AA:BB');
    expect(facts.fingerprint).toBe('AA:BB');
    expect(log.at('info')).toEqual([texts.certificate_pinned]);
    await expect(check('CC:DD')).rejects.toThrow(texts.certificate_changed('CC:DD', '10.0.0.7:443'));
    await expect(check('CC:DD')).rejects.toThrow(DeviceRejected);
  });

  it('trusts the configured certificate alone, however its fingerprint is written', async () => {
    const { facts, check } = start('aabb');
    await check('AA:BB');
    await expect(check('CC:DD')).rejects.toThrow(DeviceRejected);
    expect(facts.fingerprint).toBeUndefined();
  });
});

it('compares fingerprints without colons and without case', () => {
  expect(bareFingerprint('AB:cD')).toBe('abcd');
});
