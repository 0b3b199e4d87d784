/** What the tests of the outbox begin with: one for each, which is balanced at the end, and what they ask of it. */
import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, expect } from 'vitest';
import type { OutgoingMessage } from '../../../src/kit/outbox/live/outgoing.ts';
import { eventually } from '../eventually.ts';
import { makeDirectory } from '../temporary.ts';
import { FaultyDisk } from './faulty-disk.ts';
import { messagesIn, openLab, type OutboxLab } from './outbox-lab.ts';

export interface DispatchScene {
  /** The outbox of this test. */
  readonly lab: OutboxLab;
  readonly dir: string;
  /** That of the outbox; it is well again at the end. */
  readonly disk: FaultyDisk;
  /** The next message to the broker, of the backlog too. */
  readonly next: () => OutgoingMessage | undefined;
  /** Resolves when the disk counts as failing. */
  readonly failing: () => Promise<void>;
  /** The broker has acknowledged it, and somebody had subscribed. */
  readonly heard: (outgoing: OutgoingMessage) => void;
  /** Closes the outbox and opens it again. */
  reopen(options?: Parameters<typeof openLab>[1]): Promise<void>;
}

/** To be called where tests are described. `options`: of the outbox that each begins with. */
export function dispatchScene(options: () => Parameters<typeof openLab>[1] = () => ({})): DispatchScene {
  let dir = '';
  let disk: FaultyDisk;
  let lab: OutboxLab;
  beforeEach(async () => {
    dir = await makeDirectory();
    disk = new FaultyDisk();
    lab = await openLab(dir, { disk, ...options() });
  });
  afterEach(async () => {
    expect(lab.outbox.ledger().balanced).toBe(true);
    disk.heal();
    await lab.outbox.close();
    await rm(dir, { recursive: true });
  });
  return {
    get lab() {
      return lab;
    },
    get dir() {
      return dir;
    },
    get disk() {
      return disk;
    },
    next: () => lab.outbox.dispatch.next({ backlog: true }),
    failing: async () => eventually('failing', () => lab.outbox.health().state === 'failing'),
    heard: (outgoing) => lab.outbox.dispatch.acknowledged(outgoing, { hasSubscribers: true }),
    async reopen(changes) {
      await lab.outbox.close();
      lab = await openLab(dir, { disk, ...changes });
    },
  };
}

export async function soon(holds: () => boolean | Promise<boolean>): Promise<void> {
  return eventually('the outbox gets there', holds);
}

export const byValue = (a: unknown, b: unknown): number => Number(a) - Number(b);

/** What was sent, by its numbers. */
export const numbers = (messages: readonly OutgoingMessage[]): unknown[] =>
  messages.flatMap(messagesIn).map(({ data }) => data['n']);
