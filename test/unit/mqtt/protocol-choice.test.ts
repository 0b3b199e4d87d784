import { describe, expect, it } from 'vitest';
import { ProtocolChoice } from '../../../src/mqtt/reconnect.ts';

const hour_ms = 3_600_000;

describe('the choice of the version of MQTT', () => {
  it.each(['closed', 'silent'] as const)('tries 3.1.1 at once after a connection that was %s', (stage) => {
    const choice = new ProtocolChoice('auto', () => 0);
    expect(choice.next()).toBe('5');
    expect(choice.failed({ stage, code: undefined })).toBe(true);
    expect(choice.next()).toBe('3.1.1');
    choice.connected();
    expect(choice.next()).toBe('3.1.1');
  });

  // brocaar/chirpstack-network-server#183; hivemq/hivemq-community-edition#256: a broker that starts ends connections
  it('keeps MQTT 5 for an hour with a broker that has accepted it and answers no more', () => {
    let now_ms = 0;
    const choice = new ProtocolChoice('auto', () => now_ms);
    choice.connected();
    now_ms = 10 * hour_ms;
    expect(choice.failed({ stage: 'silent', code: undefined })).toBe(false);
    now_ms += hour_ms - 1;
    expect(choice.failed({ stage: 'closed', code: undefined })).toBe(false);
    expect(choice.next()).toBe('5');
    now_ms += 1;
    expect(choice.failed({ stage: 'closed', code: undefined })).toBe(true);
    expect(choice.next()).toBe('3.1.1');
  });

  it('goes back to MQTT 5 when 3.1.1 is not answered either', () => {
    const choice = new ProtocolChoice('auto', () => 0);
    choice.failed({ stage: 'closed', code: undefined });
    expect(choice.failed({ stage: 'closed', code: undefined })).toBe(false);
    expect(choice.next()).toBe('5');
  });

  it('keeps 3.1.1 when the broker answers it with a refusal of the password', () => {
    const choice = new ProtocolChoice('auto', () => 0);
    choice.failed({ stage: 'closed', code: undefined });
    expect(choice.failed({ stage: 'refused', code: 4 })).toBe(false);
    expect(choice.next()).toBe('3.1.1');
  });

  it.each([0x84, 1])('takes 3.1.1 when the broker refuses MQTT 5 by code %i', (code) => {
    const choice = new ProtocolChoice('auto', () => 0);
    expect(choice.failed({ stage: 'refused', code })).toBe(true);
    expect(choice.next()).toBe('3.1.1');
    expect(choice.failed({ stage: 'closed', code: undefined })).toBe(false);
    expect(choice.next()).toBe('3.1.1');
  });

  it('tries MQTT 5 again after an hour', () => {
    let now_ms = 10;
    const choice = new ProtocolChoice('auto', () => now_ms);
    choice.failed({ stage: 'closed', code: undefined });
    choice.connected();
    now_ms += hour_ms;
    expect(choice.next()).toBe('3.1.1');
    now_ms += 1;
    expect(choice.next()).toBe('5');
  });

  it('learns nothing from a broker that cannot be reached', () => {
    const choice = new ProtocolChoice('auto', () => 0);
    expect(choice.failed({ stage: 'unreachable', code: undefined })).toBe(false);
    expect(choice.next()).toBe('5');
  });

  it.each(['5', '3.1.1'] as const)('never leaves the version %s that the configuration names', (setting) => {
    const choice = new ProtocolChoice(setting, () => hour_ms * 2);
    expect(choice.failed({ stage: 'closed', code: undefined })).toBe(false);
    expect(choice.failed({ stage: 'refused', code: 0x84 })).toBe(false);
    expect(choice.next()).toBe(setting);
  });
});
