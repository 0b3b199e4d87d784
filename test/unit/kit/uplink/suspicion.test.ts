import { describe, expect, it } from 'vitest';
import type { OutgoingMessage } from '../../../../src/kit/outbox/live/outgoing.ts';
import { Suspicion } from '../../../../src/kit/uplink/problems.ts';
import { outgoingRow } from '../../../support/disk/messages.ts';

const outgoing = (id: number, kind = 'feed'): OutgoingMessage =>
  outgoingRow(id, { channel: `${kind}/a/gps`, backlog: true });

function calm(suspicion: Suspicion): void {
  suspicion.connected();
  for (let n = 0; n < 4; n++) suspicion.ponged();
}

describe('the search for a message that makes the broker hang up', () => {
  it('sends one message at a time after two losses, and has evidence only on a connection that answered before', () => {
    const suspicion = new Suspicion();
    const poison = outgoing(7, 'event');
    expect(suspicion.hungUp([outgoing(1), poison], undefined)).toBeUndefined();
    expect(suspicion.cautious).toBe(false);
    expect(suspicion.hungUp([outgoing(1), poison], undefined)).toBeUndefined();
    expect(suspicion.cautious).toBe(true);
    suspicion.connected();
    expect(suspicion.hungUp([poison], undefined)).toBeUndefined();
    expect([suspicion.isolates(poison), suspicion.isolates(outgoing(1))]).toEqual([true, false]);
    suspicion.connected();
    expect(suspicion.isCalm).toBe(false);
    expect(suspicion.hungUp([poison], undefined)).toBeUndefined();
    calm(suspicion);
    expect(suspicion.isCalm).toBe(true);
    expect(suspicion.hungUp([poison], undefined)).toBe(poison);
  });

  it('clears a kind that is acknowledged, so that an unstable link makes no message a suspect', () => {
    const suspicion = new Suspicion();
    for (let loss = 0; loss < 20; loss += 1) {
      calm(suspicion);
      suspicion.answered(outgoing(6));
      expect(suspicion.hungUp([outgoing(10 + loss)], undefined)).toBeUndefined();
    }
  });

  it('trusts the reason code of a broker that closes the connection over a packet, once only one was in flight', () => {
    const suspicion = new Suspicion();
    suspicion.connected();
    expect(suspicion.hungUp([outgoing(7), outgoing(8)], 0x95)).toBeUndefined();
    expect(suspicion.cautious).toBe(true);
    expect(suspicion.hungUp([outgoing(7)], 0x95)?.content).toMatchObject({ row: { id: 7 } });
    expect(new Suspicion().hungUp([outgoing(7)], 0x8b)).toBeUndefined();
  });

  it('suspects no message when none was in flight', () => {
    const suspicion = new Suspicion();
    for (let n = 0; n < 10; n += 1) expect(suspicion.hungUp([], undefined)).toBeUndefined();
    expect(suspicion.cautious).toBe(false);
    expect(suspicion.isSearching).toBe(false);
  });

  it('ends the search after sixteen acknowledgements', () => {
    const suspicion = new Suspicion();
    for (let n = 0; n < 3; n += 1) suspicion.hungUp([outgoing(7), outgoing(8)], undefined);
    for (let n = 0; n < 15; n += 1) suspicion.answered(outgoing(1));
    expect(suspicion.cautious).toBe(true);
    suspicion.answered(outgoing(1));
    expect([suspicion.cautious, suspicion.isSearching]).toEqual([false, false]);
  });
});
