import { describe, expect, it } from 'vitest';
import type { Parcel } from '../../../src/outbox/parcel.ts';
import { Suspicion } from '../../../src/uplink/suspicion.ts';

function parcel(id: number): Parcel {
  const row = {
    id,
    lane: 'feed',
    channel: 'feed/a/gps',
    time_ms: 0,
    mono_ms: null,
    body: '{}',
    time_quality: undefined,
  } as const;
  return {
    lane: 'feed',
    channel: row.channel,
    payload: '',
    retain: false,
    rows: 1,
    backlog: true,
    content: { kind: 'row', row },
  };
}

describe('suspicion', () => {
  it('sends one message at a time after two losses, and names the one that was alone at three', () => {
    const suspicion = new Suspicion();
    const poison = parcel(7);
    expect(suspicion.hungUp([parcel(1), poison, parcel(3)])).toBeUndefined();
    expect(suspicion.cautious).toBe(false);
    expect(suspicion.hungUp([parcel(1), poison, parcel(3)])).toBeUndefined();
    expect(suspicion.cautious).toBe(true);
    expect(suspicion.hungUp([poison])).toBeUndefined();
    expect(suspicion.hungUp([poison])).toBeUndefined();
    expect(suspicion.hungUp([poison])).toBe(poison);
  });

  it('knows the message again after it was read back from the disk', () => {
    const suspicion = new Suspicion();
    suspicion.hungUp([parcel(7)]);
    suspicion.hungUp([parcel(7)]);
    expect(suspicion.hungUp([parcel(7)])?.content).toMatchObject({ row: { id: 7 } });
  });

  it('trusts again after some messages went well, so that a link that drops often blames nobody', () => {
    const suspicion = new Suspicion();
    for (let drop = 0; drop < 20; drop += 1) {
      expect(suspicion.hungUp([parcel(7)])).toBeUndefined();
      for (let n = 0; n < 16; n += 1) suspicion.acked();
      expect(suspicion.cautious).toBe(false);
    }
  });

  it('blames nobody when nothing was in flight', () => {
    const suspicion = new Suspicion();
    for (let n = 0; n < 10; n += 1) expect(suspicion.hungUp([])).toBeUndefined();
    expect(suspicion.cautious).toBe(false);
  });
});
