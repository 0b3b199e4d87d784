import { describe, expect, it } from 'vitest';
import { Refusals } from '../../../../../src/kit/outbox/live/gate.ts';
import { recordingLog } from '../../../../support/recording-log.ts';
import { texts } from '../../../../../src/kit/outbox/texts.ts';

const kind = 'event/a/motion';

function lab() {
  let now_ms = 0;
  const log = recordingLog();
  return {
    log,
    refusals: new Refusals(() => now_ms, log),
    get now_ms() {
      return now_ms;
    },
    pass(ms: number) {
      now_ms += ms;
    },
  };
}

type Lab = ReturnType<typeof lab>;
const refuse = ({ refusals }: Lab, id: number) => refusals.refused(kind, id, 0x87, 'not authorised');

describe('Refusals', () => {
  it('pauses a kind of topic after three refusals, and no other kind', () => {
    const it = lab();
    expect([1, 2, 3].map((id) => refuse(it, id))).toEqual(['kind', 'kind', 'kind']);
    expect(it.refusals.rests(kind)).toBe(true);
    expect(it.refusals.allows(kind, 4)).toBe(false);
    expect(it.refusals.allows('feed/a/gps', 5)).toBe(true);
    expect(it.refusals.kinds()).toEqual([{ kind: 'event', code: 0x87, reason: 'not authorised' }]);
  });

  it('probes with growing pauses of at most half a minute, for days, and drops no message', () => {
    const it = lab();
    for (const id of [1, 2, 3]) refuse(it, id);
    const probes: number[] = [];
    for (let n = 0; n < 2 * 86_400; n += 1) {
      it.pass(1_000);
      if (!it.refusals.allows(kind, 1_000 + n)) continue;
      probes.push(it.now_ms);
      expect(refuse(it, 1_000 + n)).toBe('kind');
    }
    const pauses = probes.slice(1).map((at, index) => at - (probes[index] ?? 0));
    expect(Math.max(...pauses)).toBeLessThanOrEqual(31_000);
    expect(pauses.at(-1)).toBeGreaterThanOrEqual(15_000);
    expect(it.log.at('warn')).toHaveLength(1);
  });

  it('resumes as soon as a probe is accepted, and logs the end of the episode once, with the count', () => {
    const it = lab();
    for (const id of [1, 2, 3]) refuse(it, id);
    it.pass(5_000);
    expect(it.refusals.allows(kind, 4)).toBe(true);
    it.refusals.accepted(kind);
    expect(it.refusals.allows(kind, 5)).toBe(true);
    it.refusals.tick();
    it.pass(5_000);
    it.refusals.tick();
    it.refusals.tick();
    expect(it.log.at('warn')).toHaveLength(1);
    expect(it.log.at('info')).toEqual([texts.kind_accepted]);
    expect(it.refusals.kinds()).toEqual([]);
  });

  it('quarantines a message that is refused repeatedly while others of its kind are accepted', () => {
    const it = lab();
    const verdicts = [1, 2, 3].map(() => {
      const verdict = refuse(it, 1);
      it.refusals.accepted(kind);
      return verdict;
    });
    expect(verdicts).toEqual(['kind', 'kind', 'message']);
  });

  it('quarantines no message while none of its kind is accepted', () => {
    const it = lab();
    for (let n = 0; n < 1_000; n += 1) expect(refuse(it, 1)).toBe('kind');
  });

  it('probes with a message that was not refused yet, and with a refused one only when there is no other', () => {
    const it = lab();
    for (const id of [1, 2, 3]) refuse(it, id);
    it.pass(1_000);
    expect(it.refusals.allows(kind, 1)).toBe(false);
    expect(it.refusals.allows(kind, 9)).toBe(true);
    refuse(it, 9);
    it.pass(4_100);
    expect(it.refusals.allows(kind, 9)).toBe(true);
  });

  it('probes at once over a new connection', () => {
    const it = lab();
    for (const id of [1, 2, 3]) refuse(it, id);
    it.refusals.reset();
    expect(it.refusals.allows(kind, 4)).toBe(true);
    expect(it.refusals.allows(kind, 5)).toBe(false);
  });
});
