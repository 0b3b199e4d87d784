/**
 * Whatever uplink, broker, cloud and disk do, and in whatever order: every accepted message ends in exactly one of the books,
 * what is said to be on disk is there, and of a retained topic no older value follows a newer one.
 */
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Lane, lanes } from '../../../../src/contract/lanes.ts';
import { rowId } from '../../../../src/kit/outbox/row.ts';
import type { OutgoingMessage } from '../../../../src/kit/outbox/live/outgoing.ts';
import { sleep } from '../../../../src/platform/time.ts';
import { eventually } from '../../../support/eventually.ts';
import { FaultyDisk } from '../../../support/disk/faulty-disk.ts';
import { messagesIn, openLab, type OutboxLab } from '../../../support/disk/outbox-lab.ts';
import { countRows } from '../../../support/disk/store-lab.ts';
import { withDirectory } from '../../../support/temporary.ts';

type Answer = 'delivered' | 'no_subscribers' | 'back' | 'refused' | 'too_large';
type Step =
  | { readonly do: 'send'; readonly lane: Lane; readonly count: number }
  | { readonly do: 'take'; readonly count: number }
  | { readonly do: 'answer'; readonly which: number; readonly how: Answer }
  | { readonly do: 'connect'; readonly session_present: boolean; readonly ack: 'broker' | 'cloud' }
  | { readonly do: 'cloud'; readonly share: number }
  | { readonly do: 'disk'; readonly state: 'refuse' | 'hang' | 'heal' }
  | { readonly do: 'disconnect' | 'flush' | 'wait' | 'restart' | 'epoch' };

const how = fc.constantFrom<Answer[]>(
  'delivered',
  'delivered',
  'delivered',
  'delivered',
  'no_subscribers',
  'back',
  'refused',
  'too_large',
);
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
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('connect'),
      session_present: fc.boolean(),
      ack: fc.constantFrom('broker', 'cloud'),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('cloud'), share: fc.double({ min: 0, max: 1, noNaN: true }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('disk'),
      state: fc.constantFrom('refuse', 'hang', 'heal', 'heal'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constantFrom('disconnect', 'flush', 'flush', 'wait', 'wait', 'restart', 'epoch'),
    }),
  },
);

/** Plays the story and keeps its own books, from nothing but what went in and what the broker answered. */
class Story {
  readonly #dir: string;
  readonly #disk: FaultyDisk;
  #lab: OutboxLab;
  #out: OutgoingMessage[] = [];
  #connected = false;
  /** The disk takes everything: what is said to be on disk can be looked for there. */
  #is_well = true;
  readonly #accepted = new Map<string, Lane>();
  readonly #delivered = new Set<string>();
  /** Retained topics keep the newest only: the others may be superseded. */
  readonly #replaceable = new Set<string>();
  /** What the broker has: the cloud may acknowledge it. */
  readonly #at_broker = new Map<number, Set<number>>();
  /** The newest row of each retained topic that was handed out. */
  readonly #newest = new Map<string, number>();

  constructor(dir: string, disk: FaultyDisk, lab: OutboxLab) {
    this.#dir = dir;
    this.#disk = disk;
    this.#lab = lab;
  }

  async play(next: Step): Promise<void> {
    await this.#do(next);
    expect(this.#lab.outbox.ledger().balanced).toBe(true);
  }

  #do(next: Step): void | Promise<void> {
    switch (next.do) {
      case 'send':
        return times(next.count, (n) => this.#send(next.lane, n));
      case 'take':
        return times(next.count, () => void this.#take());
      case 'answer':
        return this.#answer(next.which, next.how);
      case 'connect':
        return this.#connect(next);
      case 'cloud':
        return this.#acknowledgeByCloud(next.share);
      case 'disk':
        this.#disk[next.state]();
        this.#is_well = next.state === 'heal';
        return;
      case 'disconnect':
        return this.#disconnect();
      case 'flush':
      case 'wait':
      case 'epoch':
      case 'restart':
        return this.#wait(next.do);
      default:
        return next satisfies never;
    }
  }

  async #wait(how: 'flush' | 'wait' | 'epoch' | 'restart'): Promise<void> {
    if (how === 'flush') await this.#flush();
    else if (how === 'wait') await sleep(40, new AbortController().signal);
    else if (how === 'restart') await this.#restart();
    else if (this.#is_well) await this.#lab.outbox.beginEpoch(0);
  }

  /** Disk, broker and cloud take everything from now on; then every message must be accounted for. */
  async end(): Promise<void> {
    this.#disk.heal();
    this.#is_well = true;
    await eventually('the disk is well', () => this.#lab.outbox.health().state === 'ok');
    this.#disconnect();
    this.#lab.connect();
    this.#connected = true;
    await this.#lab.outbox.quarantine.retry(undefined);
    await eventually(
      'everything has left the buffer',
      async () => {
        for (let outgoing = this.#take(); outgoing; outgoing = this.#take())
          this.#answer(this.#out.length - 1, 'delivered');
        this.#acknowledgeByCloud(1);
        const { buffered, quarantined } = this.#lab.outbox.ledger();
        if (quarantined > 0) await this.#lab.outbox.quarantine.retry(undefined);
        return buffered === 0 && quarantined === 0;
      },
      30_000,
    );
    const missing = [...this.#accepted.keys()].filter(
      (name) => !this.#delivered.has(name) && !this.#replaceable.has(name),
    );
    expect(missing).toEqual([]);
    this.#checkSuperseded();
    expect(this.#lab.outbox.ledger().balanced).toBe(true);
    await this.#lab.outbox.close();
  }

  /** Messages that reached the broker are delivered in the books, and not called superseded. */
  #checkSuperseded(): void {
    const { dropped } = this.#lab.outbox.ledger();
    const undelivered = [...this.#replaceable].filter((name) => !this.#delivered.has(name)).length;
    expect(dropped['superseded'] ?? 0).toBeLessThanOrEqual(undelivered);
  }

  #send(lane: Lane, n: number): void {
    const seq = this.#lab.send(lane, n, lane === 'presence' ? `p${n % 3}` : 'x');
    const name = `${this.#lab.outbox.epoch} ${seq}`;
    this.#accepted.set(name, lane);
    if (lane === 'presence') this.#replaceable.add(name);
  }

  #take(): OutgoingMessage | undefined {
    const outgoing = this.#lab.outbox.dispatch.next({ backlog: true });
    if (!outgoing) return undefined;
    this.#out.push(outgoing);
    if (outgoing.retain || outgoing.removal) {
      const [id = 0] = messagesIn(outgoing).map(rowId);
      expect(id).toBeGreaterThanOrEqual(this.#newest.get(outgoing.channel) ?? 0);
      this.#newest.set(outgoing.channel, id);
    }
    return outgoing;
  }

  #answer(which: number, with_what: Answer): void {
    const index = Math.min(which, this.#out.length - 1);
    const [outgoing] = index < 0 ? [] : this.#out.splice(index, 1);
    if (!outgoing) return;
    const { dispatch } = this.#lab.outbox;
    if (with_what === 'delivered') {
      for (const { epoch, seq } of messagesIn(outgoing)) {
        this.#delivered.add(`${epoch} ${seq}`);
        this.#at_broker.set(epoch, (this.#at_broker.get(epoch) ?? new Set()).add(seq));
      }
      dispatch.acknowledged(outgoing, { hasSubscribers: true });
    } else if (with_what === 'no_subscribers') dispatch.acknowledged(outgoing, { hasSubscribers: false });
    else if (with_what === 'back') dispatch.requeue(outgoing);
    else if (with_what === 'refused') dispatch.refused(outgoing, 0x87, 'not authorised');
    else dispatch.refused(outgoing, 0x95, 'packet too large');
  }

  /** The cloud names a share of what the broker has, and with it what lies between: rows that were never sent stay. */
  #acknowledgeByCloud(share: number): void {
    for (const [epoch, seqs] of this.#at_broker) {
      const sorted = [...seqs].sort((a, b) => a - b);
      const last = sorted[Math.floor((sorted.length - 1) * share)];
      if (last !== undefined) this.#lab.outbox.confirm({ epoch, ranges: [[0, last]] });
    }
  }

  /** What waits to be written is there once the outbox says so. */
  async #flush(): Promise<void> {
    if (!this.#is_well) return;
    const { outbox } = this.#lab;
    await eventually('the disk is well', () => outbox.health().state === 'ok');
    await outbox.flush();
    const rows = Object.values(countRows(join(this.#dir, 'buffer.db'))).reduce(
      (sum, each) => sum + each.rows,
      0,
    );
    const in_flight = this.#out.reduce((sum, each) => sum + each.rows, 0);
    expect(rows).toBeGreaterThanOrEqual(outbox.ledger().buffered - in_flight);
  }

  #connect(how: { readonly session_present: boolean; readonly ack: 'broker' | 'cloud' }): void {
    if (!this.#connected) this.#lab.connect(how);
    this.#connected = true;
  }

  #disconnect(): void {
    this.#out = [];
    if (this.#connected) this.#lab.outbox.dispatch.disconnected();
    this.#connected = false;
  }

  /** A clean stop on a disk that is well loses nothing; nothing is known of the order of retained values then. */
  async #restart(): Promise<void> {
    this.#disconnect();
    this.#disk.heal();
    this.#is_well = true;
    await eventually('the disk is well', () => this.#lab.outbox.health().state === 'ok');
    await this.#lab.outbox.close();
    this.#lab = await openLab(this.#dir, { disk: this.#disk });
  }
}

function times(count: number, act: (n: number) => void): void {
  for (let n = 0; n < count; n += 1) act(n);
}

it('Outbox delivers, supersedes or quarantines every accepted message, with balanced counters at every step', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      await withDirectory(async (dir) => {
        const disk = new FaultyDisk();
        const story = new Story(dir, disk, await openLab(dir, { disk }));
        for (const each of steps) await story.play(each);
        await story.end();
      });
    }),
    { numRuns: Number(process.env['STORIES'] ?? 8), endOnFailure: true, interruptAfterTimeLimit: 90_000 },
  );
}, 120_000);
