import { describe, expect, it } from 'vitest';
import { BrokerLimits } from '../../../../src/kit/uplink/broker-limits.ts';
import { Problems } from '../../../../src/kit/uplink/problems.ts';

function lab() {
  const problems = new Problems(() => 0, { warn: () => undefined });
  return { problems, limits: new BrokerLimits(problems) };
}

const quota_exceeded = 0x97;
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

  describe('after connections that ended at retained messages', () => {
    const message = { topic: 't', payload: '{}', retain: true } as const;
    const ended = async (): Promise<never> => {
      throw new Error('connection reset by peer');
    };
    const answered = async () => ({ code: 0, reason: '' });

    async function unsure() {
      const { limits, problems } = lab();
      for (let n = 0; n < 3; n += 1) {
        limits.begin();
        const session = {
          ...whole,
          // The message that is not retained is answered in the third one.
          publishAndWait: async () => (n === 2 && !session.retains ? answered() : ended()),
        };
        await limits.publishBirth(session, message).catch(() => limits.ended());
      }
      limits.begin();
      const session = { ...whole };
      limits.accepted(session);
      return { limits, problems, session };
    }

    it('say nothing of a broker that answers both with its quota: it takes retained messages', async () => {
      const { limits } = lab();
      const session = { ...whole, publishAndWait: ended };
      for (let n = 0; n < 2; n += 1) {
        limits.begin();
        await limits.publishBirth(session, message).catch(() => limits.ended());
      }
      limits.begin();
      const trial = { ...session, publishAndWait: async () => ({ code: quota_exceeded, reason: '' }) };
      expect(await limits.publishBirth(trial, message)).toBe(quota_exceeded);
      expect(trial.retains).toBe(true);
      expect([limits.isUnsure, limits.retains]).toEqual([false, false]);
      limits.begin();
      expect(limits.retains).toBe(true);
    });

    it('are not shown by a quota that is exceeded', async () => {
      const { limits, session } = await unsure();
      const held = {
        ...session,
        publishAndWait: async () => ({ code: quota_exceeded, reason: '' }),
        ended_by_us: false,
      };
      expect(await limits.tryRetained(held, message)).toBe(false);
      expect([limits.isUnsure, held.retains]).toEqual([true, false]);
    });

    it('claim nothing of the broker until a connection has held', async () => {
      const { limits, problems, session } = await unsure();
      expect(limits.isUnsure).toBe(true);
      expect(session.retains).toBe(false);
      expect(problems.sentences().join('\n')).not.toContain('allow retained messages');
    });

    it('keep nothing of a link that cut the connections: the broker takes them in one that has held', async () => {
      const { limits, problems, session } = await unsure();
      const held = { ...session, publishAndWait: answered, ended_by_us: false };
      expect(await limits.tryRetained(held, message)).toBe(true);
      expect(held.retains).toBe(true);
      expect([limits.retains, limits.isUnsure]).toEqual([true, false]);
      expect(problems.sentences()).toEqual([]);
    });

    it('are those of the broker where such a connection ends too', async () => {
      const { limits, problems, session } = await unsure();
      const stopped = { ...session, publishAndWait: ended, ended_by_us: true };
      expect(await limits.tryRetained(stopped, message)).toBe(false);
      expect(limits.isUnsure).toBe(true);
      const held = { ...stopped, ended_by_us: false };
      expect(await limits.tryRetained(held, message)).toBe(false);
      expect(held.retains).toBe(false);
      expect([limits.retains, limits.isUnsure]).toEqual([false, false]);
      expect(problems.sentences()).toEqual([expect.stringContaining('allow retained messages')]);
    });
  });

  it('do not let a kit be served with QoS 0', () => {
    const { limits, problems } = lab();
    expect(limits.accepted({ ...whole, qos_max: 0 })).toBe(false);
    expect(problems.sentences()).toHaveLength(1);
    expect(limits.accepted(whole)).toBe(true);
    expect(problems.sentences()).toEqual([]);
  });
});
