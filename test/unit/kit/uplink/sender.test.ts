/** The sender on a fake clock, between an outbox and a session that the test plays. */
import { describe, expect, it, vi } from 'vitest';
import type { Lane } from '../../../../src/contract/lanes.ts';
import { channels, upTopic } from '../../../../src/contract/topics.ts';
import type { OutgoingMessage } from '../../../../src/kit/outbox/live/outgoing.ts';
import type { Outgoing, Puback } from '../../../../src/mqtt/session.ts';
import { type Acknowledged, type Pace, Sender } from '../../../../src/kit/uplink/sender.ts';
import { Throttle } from '../../../../src/kit/uplink/throttle.ts';
import { Suspicion } from '../../../../src/kit/uplink/problems.ts';
import { useFakeTime } from '../../../support/fake-time.ts';
import { test_drones, test_kit } from '../../../support/gps.ts';
import { texts } from '../../../../src/kit/uplink/texts.ts';
import { outgoingRow } from '../../../support/disk/messages.ts';

useFakeTime();

const drone = test_drones[0];
const too_large = 0x95;
const not_authorized = 0x87;
const accepted: Puback = { code: 0, reason: '' };

let last_id = 0;
const outgoing = (changes: Partial<OutgoingMessage> = {}): OutgoingMessage =>
  outgoingRow((last_id += 1), { channel: channels.feed(drone, 'gps'), ...changes });

interface Sent extends Outgoing {
  readonly answer: (puback?: Puback) => void;
}

interface Scene {
  readonly sender: Sender;
  readonly waiting: OutgoingMessage[];
  readonly sent: Sent[];
  readonly suspicion: Suspicion;
  readonly session: {
    last_received_ms: number;
    is_skipping: boolean;
    receive_maximum: number;
    packet_bytes_max: number;
    pong: () => void;
    pings: number;
    /** So long the process did not run: its clock went on, its timers did not. */
    stalled_ms: number;
  };
  readonly ended: string[];
  readonly acknowledged: { readonly outgoing: OutgoingMessage; readonly hasSubscribers: boolean }[];
  readonly refused: { readonly outgoing: OutgoingMessage; readonly code: number; readonly reason: string }[];
  readonly pubacks: Acknowledged[];
  /** Of problems that were noted. */
  readonly sentences: string[];
  /** Lets the sender see what waits. */
  readonly wake: () => Promise<void>;
}

async function withSender(
  {
    pace = {},
    session: limits = {},
  }: { readonly pace?: Partial<Pace>; readonly session?: Partial<Scene['session']> },
  play: (scene: Scene) => Promise<void>,
): Promise<void> {
  const end = new AbortController();
  const waiting: OutgoingMessage[] = [];
  const sent: Sent[] = [];
  const suspicion = new Suspicion();
  const session: Scene['session'] = {
    last_received_ms: performance.now(),
    is_skipping: false,
    receive_maximum: 65_535,
    packet_bytes_max: 1_000_000,
    pong: () => undefined,
    pings: 0,
    stalled_ms: 0,
    ...limits,
  };
  const ended: string[] = [];
  const acknowledged: Scene['acknowledged'] = [];
  const refused: Scene['refused'] = [];
  const pubacks: Acknowledged[] = [];
  const sentences: string[] = [];
  const sender = new Sender(
    {
      kit_id: test_kit,
      suspicion,
      now: () => performance.now() + session.stalled_ms,
      pace: {
        window_messages: 64,
        packetMs: () => 0,
        backlogKbps: () => 0,
        messagesPerSMax: () => 0,
        ...pace,
      },
      throttle: new Throttle({
        now: () => performance.now() + session.stalled_ms,
        configured: () => pace.messagesPerSMax?.() ?? 0,
        problems: { note: (_kind, { sentence }) => void sentences.push(sentence) },
      }),
      onWithheld: () => undefined,
      onRefused: () => false,
      session: Object.assign(session, {
        publish: (message: Outgoing, acked: (puback: Puback) => void) =>
          void sent.push({ ...message, answer: (puback = accepted) => acked(puback) }),
        ping: (ponged: () => void) => {
          session.pings += 1;
          session.pong = ponged;
        },
        destroy: (reason: string) => void ended.push(reason),
      }),
      dispatch: {
        next: ({ backlog }) => {
          const at = waiting.findIndex((each) => backlog || !each.backlog);
          return at < 0 ? undefined : waiting.splice(at, 1)[0];
        },
        acknowledged: (each, { hasSubscribers }) =>
          void acknowledged.push({ outgoing: each, hasSubscribers }),
        requeue: (each) => void waiting.push(each),
        refused: (each, code, reason) => void refused.push({ outgoing: each, code, reason }),
        setBatchRows: () => undefined,
      },
      onAcknowledged: (puback) => pubacks.push(puback),
      onDelivered: () => undefined,
    },
    end.signal,
  );
  const wake = async (): Promise<void> => {
    sender.wake();
    // A fake `setImmediate` can be due one millisecond later.
    await vi.advanceTimersByTimeAsync(1);
  };
  try {
    await play({
      sender,
      waiting,
      sent,
      suspicion,
      session,
      ended,
      acknowledged,
      refused,
      pubacks,
      sentences,
      wake,
    });
  } finally {
    end.abort();
    vi.clearAllTimers();
  }
}

describe('Sender', () => {
  describe('within its window', () => {
    it('sends no more messages at a time than the configuration and the broker allow', async () => {
      await withSender({ session: { receive_maximum: 2 } }, async ({ waiting, sent, sender, wake }) => {
        waiting.push(outgoing(), outgoing(), outgoing());
        await wake();
        expect(sent).toHaveLength(2);
        sent[0]?.answer();
        await wake();
        expect(sent).toHaveLength(3);
        expect(sender.window.in_flight).toBe(2);
      });
    });

    it('gathers what was appended in one turn of the event loop', async () => {
      await withSender({}, async ({ waiting, sent, sender }) => {
        waiting.push(outgoing());
        sender.wake();
        sender.wake();
        expect(sent).toEqual([]);
        waiting.push(outgoing());
        await vi.advanceTimersByTimeAsync(0);
        expect(sent).toHaveLength(2);
      });
    });

    it('holds the backlog to the rate of the link, and live messages not', async () => {
      await withSender({ pace: { backlogKbps: () => 8 } }, async ({ waiting, sent, wake }) => {
        const payload = 'x'.repeat(3_000);
        waiting.push(...Array.from({ length: 5 }, () => outgoing({ payload, backlog: true })));
        await vi.advanceTimersByTimeAsync(1_000);
        expect(sent).toHaveLength(1);
        sent[0]?.answer();
        waiting.push(outgoing());
        await wake();
        expect(sent).toHaveLength(2);
        await vi.advanceTimersByTimeAsync(3_000);
        expect(sent).toHaveLength(3);
      });
    });

    it('reports the size and the delay of every PUBACK', async () => {
      await withSender({}, async ({ waiting, sent, pubacks, wake, sender }) => {
        waiting.push(outgoing());
        await wake();
        await vi.advanceTimersByTimeAsync(80);
        sent[0]?.answer();
        expect(pubacks).toMatchObject([{ delay_ms: sender.window.rtt_ms }]);
        expect(pubacks[0]?.bytes).toBeGreaterThan(upTopic(test_kit, channels.feed(drone, 'gps')).length);
        expect(sender.window.rtt_ms).toBeCloseTo(80, -1);
      });
    });
  });

  describe('of each message', () => {
    it.each([
      ['live telemetry of a device', { lane: 'feed' }, 300],
      ['telemetry of the kit', { lane: 'kit', channel: channels.telemetry }, 3_600],
      ['an alarm', { lane: 'alarm' }, undefined],
      ['the backlog', { backlog: true }, undefined],
      ['a packet', { channel: channels.batch }, undefined],
    ] as const satisfies readonly (readonly [
      string,
      Partial<OutgoingMessage> & { lane?: Lane },
      number | undefined,
    ])[])('sets how long the broker keeps %s', async (_, changes, expiry_s) => {
      await withSender({}, async ({ waiting, sent, wake }) => {
        waiting.push(outgoing(changes));
        await wake();
        expect(sent[0]?.expiry_s).toBe(expiry_s);
      });
    });

    it('reports whether it has a subscriber', async () => {
      await withSender({}, async ({ waiting, sent, acknowledged, wake }) => {
        waiting.push(outgoing(), outgoing());
        await wake();
        sent[0]?.answer({ code: 0x10, reason: '' });
        sent[1]?.answer();
        expect(acknowledged.map(({ hasSubscribers }) => hasSubscribers)).toEqual([false, true]);
      });
    });

    it('passes on a refusal in the words of the broker', async () => {
      await withSender({}, async ({ waiting, sent, refused, wake }) => {
        waiting.push(outgoing());
        await wake();
        sent[0]?.answer({ code: not_authorized, reason: 'no such tenant' });
        expect(refused).toMatchObject([{ code: not_authorized, reason: 'no such tenant' }]);
      });
    });

    it('counts the bytes of its text, and refuses to send it when the broker accepts less', async () => {
      const session = { packet_bytes_max: 1_000 };
      await withSender({ session }, async ({ waiting, sent, refused, sender, wake }) => {
        waiting.push(outgoing({ payload: 'é'.repeat(500) }), outgoing({ payload: 'e'.repeat(500) }));
        await wake();
        expect(refused).toMatchObject([{ code: too_large }]);
        expect(sent).toHaveLength(1);
        expect(sender.in_flight).toHaveLength(1);
      });
    });

    it('follows the removal of a retained message directly by its empty payload', async () => {
      await withSender({}, async ({ waiting, sent, acknowledged, wake }) => {
        const removal = outgoing({ lane: 'presence', channel: channels.asset(drone), removal: true });
        waiting.push(removal, outgoing());
        await wake();
        expect(sent.map(({ payload, retain }) => ({ payload, retain })).slice(0, 2)).toEqual([
          { payload: '{}', retain: false },
          { payload: '', retain: true },
        ]);
        sent[0]?.answer();
        expect(acknowledged).toEqual([]);
        sent[1]?.answer({ code: 0x10, reason: '' });
        expect(acknowledged).toEqual([{ outgoing: removal, hasSubscribers: true }]);
      });
    });

    it.each([0, 1])('counts a removal as refused when part %i of it is', async (part) => {
      await withSender({}, async ({ waiting, sent, refused, acknowledged, wake }) => {
        waiting.push(outgoing({ channel: channels.asset(drone), removal: true }));
        await wake();
        for (const [n, { answer }] of sent.entries())
          answer(n === part ? { code: not_authorized, reason: 'no' } : accepted);
        expect(refused).toMatchObject([{ code: not_authorized, reason: 'no' }]);
        expect(acknowledged).toEqual([]);
      });
    });
  });

  describe('of a broker that falls silent', () => {
    it('closes the connection after four seconds with a message in flight', async () => {
      await withSender({}, async ({ waiting, ended, wake }) => {
        waiting.push(outgoing());
        await wake();
        await vi.advanceTimersByTimeAsync(4_000);
        expect(ended).toEqual([]);
        await vi.advanceTimersByTimeAsync(500);
        expect(ended[0]).toMatch(/^no answer from the broker for 4\.\d s$/u);
      });
    });

    it('reads what has arrived before it judges the silence, after a stall of its own process', async () => {
      await withSender({}, async ({ waiting, session, ended, wake }) => {
        waiting.push(outgoing());
        await wake();
        session.stalled_ms = 5_000;
        await vi.advanceTimersByTimeAsync(250);
        session.last_received_ms = performance.now() + session.stalled_ms;
        await vi.advanceTimersByTimeAsync(3_000);
        expect(ended).toEqual([]);
        await vi.advanceTimersByTimeAsync(2_000);
        expect(ended[0]).toMatch(/^no answer from the broker for 4\.\d s$/u);
      });
    });

    it('waits for four round trips where the link is slower', async () => {
      await withSender({}, async ({ waiting, sent, session, ended, wake }) => {
        waiting.push(outgoing());
        await wake();
        await vi.advanceTimersByTimeAsync(3_000);
        sent[0]?.answer();
        session.last_received_ms = performance.now();
        waiting.push(outgoing());
        await wake();
        await vi.advanceTimersByTimeAsync(11_900);
        expect(ended).toEqual([]);
        await vi.advanceTimersByTimeAsync(600);
        expect(ended).not.toEqual([]);
      });
    });

    it('waits without an end while nothing is in flight', async () => {
      await withSender({}, async ({ ended }) => {
        await vi.advanceTimersByTimeAsync(600_000);
        expect(ended).toEqual([]);
      });
    });

    it.each([
      ['gives up', false, ['the broker did not acknowledge a message for 60 s']],
      ['waits for', true, []],
    ] as const)(
      '%s a PUBACK that is missing for a minute while bytes arrive (large message: %s)',
      async (_, is_skipping, reasons) => {
        await withSender({ session: { is_skipping } }, async ({ waiting, session, ended, wake }) => {
          waiting.push(outgoing());
          await wake();
          for (let second = 0; second <= 60 && ended.length === 0; second += 1) {
            session.last_received_ms = performance.now();
            await vi.advanceTimersByTimeAsync(1_000);
          }
          expect(ended.slice(0, 1)).toEqual(reasons);
        });
      },
    );
  });

  describe('of a message that is suspected of making the broker hang up', () => {
    it('sends it alone, after four answers to pings', async () => {
      await withSender({}, async ({ waiting, sent, suspicion, session, wake }) => {
        const suspect = outgoing();
        suspicion.hungUp([suspect], undefined);
        suspicion.connected();
        waiting.push(suspect, outgoing({ channel: channels.telemetry }));
        await wake();
        for (let pongs = 1; pongs <= 4; pongs += 1) {
          expect(sent).toEqual([]);
          expect(session.pings).toBe(pongs);
          session.pong();
          await vi.advanceTimersByTimeAsync(0);
        }
        expect(sent).toHaveLength(1);
        await wake();
        expect(sent).toHaveLength(1);
        sent[0]?.answer();
        await wake();
        expect(sent).toHaveLength(2);
      });
    });

    it('sends one message at a time after two losses, until sixteen were answered', async () => {
      await withSender({ session: { receive_maximum: 8 } }, async ({ waiting, sent, suspicion, wake }) => {
        const two = [outgoing({ channel: channels.telemetry }), outgoing({ channel: channels.telemetry })];
        suspicion.hungUp(two, undefined);
        suspicion.hungUp(two, undefined);
        suspicion.connected();
        waiting.push(...Array.from({ length: 30 }, () => outgoing()));
        await wake();
        for (let n = 1; n <= 16; n += 1) {
          expect(sent).toHaveLength(n);
          sent[n - 1]?.answer();
          await wake();
        }
        expect(sent).toHaveLength(16 + 8);
      });
    });
  });

  describe('where the broker limits messages a second', () => {
    it('sends at most as many as are configured, evenly', async () => {
      await withSender({ pace: { messagesPerSMax: () => 10 } }, async ({ waiting, sent, wake }) => {
        waiting.push(...Array.from({ length: 100 }, () => outgoing()));
        await wake();
        const answered = (): void => sent.forEach(({ answer }) => answer());
        for (let second = 1; second <= 5; second += 1) {
          await vi.advanceTimersByTimeAsync(1_000);
          answered();
        }
        expect(sent.length).toBeGreaterThan(40);
        expect(sent.length).toBeLessThanOrEqual(50);
      });
    });

    it('gives up a connection on which pings are answered and messages are not, and learns what was taken', async () => {
      await withSender({}, async ({ waiting, sent, session, ended, sentences, wake }) => {
        waiting.push(...Array.from({ length: 120 }, () => outgoing()));
        await wake();
        for (const { answer } of sent.slice(0, 20)) answer();
        let pings = 0;
        for (let waited = 0; waited < 8_000; waited += 250) {
          await vi.advanceTimersByTimeAsync(250);
          if (session.pings === pings) continue;
          pings = session.pings;
          session.last_received_ms = performance.now();
          session.pong();
        }
        expect(ended[0]).toBe(texts.acknowledgements_withheld);
        expect(sentences).toEqual([texts.rate_limited(18)]);
      });
    });
  });
});
