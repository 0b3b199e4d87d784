import { describe, expect, it } from 'vitest';
import { BrokerLimits } from '../../../../src/kit/uplink/broker-limits.ts';
import { Problems } from '../../../../src/kit/uplink/problems.ts';

function lab() {
  const problems = new Problems(() => 0, { warn: () => undefined });
  return { problems, limits: new BrokerLimits(problems) };
}

const whole = { retains: true, qos_max: 2, announces_no_room: false, packet_bytes_max: 1_000_000 } as const;

describe('The limits of a broker', () => {
  it('make the will small after a CONNECT that was too large', () => {
    const { limits } = lab();
    expect(limits.compact).toBe(false);
    limits.refused(0x95);
    expect(limits.compact).toBe(true);
  });

  it('leave the will without the retain flag while the broker keeps nothing, and report it', () => {
    const { limits, problems } = lab();
    limits.refused(0x9a);
    expect(limits.retains).toBe(false);
    expect(limits.accepted({ ...whole, retains: false })).toBe(true);
    expect(limits.retains).toBe(false);
    expect(problems.sentences()).toHaveLength(1);
    limits.accepted(whole);
    expect(limits.retains).toBe(true);
    expect(problems.sentences()).toEqual([]);
  });

  it('do not let a kit be served with QoS 0', () => {
    const { limits, problems } = lab();
    expect(limits.accepted({ ...whole, qos_max: 0 })).toBe(false);
    expect(problems.sentences()).toHaveLength(1);
    expect(limits.accepted(whole)).toBe(true);
    expect(problems.sentences()).toEqual([]);
  });
});
