/** Whatever uplink, broker and disk do, and in whatever order: every accepted message ends in exactly one of the books. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { lanes, type Lane } from '../../../src/contract/lanes.ts';
import type { Parcel } from '../../../src/outbox/parcel.ts';
import { sleep } from '../../../src/platform/time.ts';
import { eventually } from '../../support/eventually.ts';
import { messagesIn, openLab, type OutboxLab } from '../../support/outbox-lab.ts';
import { withDirectory } from '../../support/temporary.ts';

type Step =
  | { readonly do: 'send'; readonly lane: Lane; readonly count: number }
  | { readonly do: 'take'; readonly count: number }
  | { readonly do: 'answer'; readonly which: number; readonly how: 'heard' | 'unheard' | 'back' | 'refused' }
  | { readonly do: 'connect'; readonly session_present: boolean }
  | { readonly do: 'disconnect' | 'flush' | 'wait' | 'restart' };

const how = fc.constantFrom('heard', 'heard', 'heard', 'heard', 'unheard', 'back', 'refused');
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('send'),
      lane: fc.constantFrom(...lanes),
      count: fc.integer({ min: 1, max: 30 }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('take'), count: fc.integer({ min: 1, max: 20 }) }) },
  { weight: 8, arbitrary: fc.record({ do: fc.constant('answer'), which: fc.nat(40), how }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('connect'), session_present: fc.boolean() }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom('disconnect', 'flush', 'wait', 'wait', 'restart') }),
  },
);

/** Plays the story and keeps its own books, from nothing but what went in and what the broker answered. */
class Story {
  readonly #dir: string;
  #lab: OutboxLab;
  #out: Parcel[] = [];
  #connected = false;
  readonly #accepted = new Set<string>();
  readonly #delivered = new Set<string>();
  /** Retained topics keep the newest only: the others may be superseded. */
  readonly #replaceable = new Set<string>();

  constructor(dir: string, lab: OutboxLab) {
    this.#dir = dir;
    this.#lab = lab;
  }

  async play(next: Step): Promise<void> {
    const { outbox } = this.#lab;
    switch (next.do) {
      case 'send':
        for (let n = 0; n < next.count; n += 1) this.#send(next.lane, n);
        break;
      case 'take':
        for (let n = 0; n < next.count; n += 1) this.#take();
        break;
      case 'answer':
        this.#answer(next.which, next.how);
        break;
      case 'connect':
        if (!this.#connected) await this.#lab.connect({ session_present: next.session_present });
        this.#connected = true;
        break;
      case 'disconnect':
        this.#disconnect();
        break;
      case 'flush':
        await outbox.committed();
        break;
      case 'wait':
        await sleep(40, new AbortController().signal);
        break;
      case 'restart':
        await this.#restart();
        break;
      default:
        next satisfies never;
    }
    expect(this.#lab.outbox.ledger().balanced).toBe(true);
  }

  /** The broker takes everything from now on; then every message must be accounted for. */
  async end(): Promise<void> {
    this.#disconnect();
    await this.#lab.connect();
    this.#connected = true;
    await this.#lab.outbox.retryQuarantined(undefined);
    await eventually(
      'everything has left the buffer',
      () => {
        for (let parcel = this.#take(); parcel; parcel = this.#take())
          this.#answer(this.#out.length - 1, 'heard');
        const { buffered, quarantined } = this.#lab.outbox.ledger();
        return buffered === 0 && quarantined === 0;
      },
      20_000,
    );
    const missing = [...this.#accepted].filter(
      (name) => !this.#delivered.has(name) && !this.#replaceable.has(name),
    );
    expect(missing).toEqual([]);
    expect(this.#lab.outbox.ledger().balanced).toBe(true);
    await this.#lab.outbox.close();
  }

  #send(lane: Lane, n: number): void {
    const seq = this.#lab.send(lane, n, lane === 'presence' ? `p${n % 3}` : 'x');
    const name = `${this.#lab.outbox.epoch} ${seq}`;
    this.#accepted.add(name);
    if (lane === 'presence') this.#replaceable.add(name);
  }

  #take(): Parcel | undefined {
    const parcel = this.#lab.outbox.dispatch.next({ backlog: true });
    if (parcel) this.#out.push(parcel);
    return parcel;
  }

  #answer(which: number, with_what: 'heard' | 'unheard' | 'back' | 'refused'): void {
    const index = Math.min(which, this.#out.length - 1);
    const [parcel] = index < 0 ? [] : this.#out.splice(index, 1);
    if (!parcel) return;
    const { dispatch } = this.#lab.outbox;
    if (with_what === 'heard') {
      for (const { epoch, seq } of messagesIn(parcel)) this.#delivered.add(`${epoch} ${seq}`);
      dispatch.acknowledged(parcel, { heard: true });
    } else if (with_what === 'unheard') dispatch.acknowledged(parcel, { heard: false });
    else if (with_what === 'back') dispatch.giveBack(parcel);
    else dispatch.refused(parcel, 0x87, 'not authorised');
  }

  #disconnect(): void {
    this.#out = [];
    if (this.#connected) this.#lab.outbox.dispatch.disconnected();
    this.#connected = false;
  }

  async #restart(): Promise<void> {
    this.#disconnect();
    await this.#lab.outbox.close();
    this.#lab = await openLab(this.#dir);
  }
}

it('every accepted message is delivered, superseded or in the quarantine, and the books balance at every step', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      await withDirectory(async (dir) => {
        const story = new Story(dir, await openLab(dir));
        for (const each of steps) await story.play(each);
        await story.end();
      });
    }),
    { numRuns: Number(process.env['STORIES'] ?? 8), endOnFailure: true, interruptAfterTimeLimit: 90_000 },
  );
}, 120_000);
