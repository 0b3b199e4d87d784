/** What the tests of dispatch begin with: an outbox for each, which is balanced at the end, and what they ask of it. */
import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, expect } from 'vitest';
import type { OutgoingMessage } from '../../../src/kit/outbox/live/outgoing.ts';
import { eventually } from '../eventually.ts';
import { makeDirectory } from '../temporary.ts';
import { messagesIn, openLab, type OutboxLab } from './outbox-lab.ts';

export interface DispatchScene {
  /** The outbox of this test. */
  readonly lab: OutboxLab;
  readonly dir: string;
  /** The broker has acknowledged it, and somebody had subscribed. */
  readonly heard: (outgoing: OutgoingMessage) => void;
  /** Closes the outbox and opens it again. */
  reopen(options?: Parameters<typeof openLab>[1]): Promise<void>;
}

/** To be called where tests are described. */
export function dispatchScene(): DispatchScene {
  let dir = '';
  let lab: OutboxLab;
  beforeEach(async () => {
    dir = await makeDirectory();
    lab = await openLab(dir);
  });
  afterEach(async () => {
    expect(lab.outbox.ledger().balanced).toBe(true);
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
    heard: (outgoing) => lab.outbox.dispatch.acknowledged(outgoing, { hasSubscribers: true }),
    async reopen(options) {
      await lab.outbox.close();
      lab = await openLab(dir, options);
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
