/** A client that stops reading an export, by the clock of the test. */
import { describe, expect, it, vi } from 'vitest';
import {
  look_every_ms,
  portion_wait_max_ms,
  quiet_max_ms,
  streamOf,
} from '../../../../../src/cloud/http/history/export.ts';
import { texts } from '../../../../../src/cloud/texts.ts';
import { useFakeTime } from '../../../../support/fake-time.ts';

useFakeTime();

/** Endless portions, and whether their end was reached. */
function endless() {
  const state = { given: 0, isClosed: false, mayRead: true };
  async function* portions(): AsyncGenerator<string, void, undefined> {
    try {
      for (;;) {
        state.given += 1;
        yield `portion ${state.given}\n`;
      }
    } finally {
      state.isClosed = true;
    }
  }
  const stream = streamOf(portions(), {
    brokenOff: (error) => new Error('broke off', { cause: error }),
    mayRead: async () => state.mayRead,
  });
  return { state, reader: stream.getReader() };
}

describe('The response of an export', () => {
  it('ends when its client takes nothing for five minutes, and gives its place back', async () => {
    const { state, reader } = endless();
    expect((await reader.read()).done).toBe(false);
    await vi.advanceTimersByTimeAsync(portion_wait_max_ms - 1);
    expect(state.isClosed).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    expect(state.isClosed).toBe(true);
    await expect(reader.closed).rejects.toThrow('broke off');
  });

  it('ends within seconds when its client may no longer read, whether it takes portions or none', async () => {
    for (const isReading of [false, true]) {
      const { state, reader } = endless();
      expect((await reader.read()).done).toBe(false);
      await vi.advanceTimersByTimeAsync(look_every_ms);
      expect(state.isClosed).toBe(false);
      state.mayRead = false;
      if (isReading) await reader.read();
      await vi.advanceTimersByTimeAsync(look_every_ms);
      expect(state.isClosed).toBe(true);
      await expect(reader.closed).rejects.toMatchObject({ cause: { message: texts.key_ended } });
    }
  });

  it('continues for a client that takes a portion now and then, and reads no further than it', async () => {
    const { state, reader } = endless();
    for (let taken = 1; taken <= 20; taken += 1) {
      expect((await reader.read()).done).toBe(false);
      await vi.advanceTimersByTimeAsync(portion_wait_max_ms - 1);
      expect(state.given).toBeLessThanOrEqual(taken + 1);
    }
    expect(state.isClosed).toBe(false);
    await reader.cancel();
    expect(state.isClosed).toBe(true);
  });

  it('has filler while a portion is long in coming, as far as its client reads, and none without a text for it', async () => {
    for (const filler of [' ', undefined]) {
      const found = Promise.withResolvers<string>();
      async function* portions(): AsyncGenerator<string, void, undefined> {
        yield await found.promise;
      }
      const parts = { brokenOff: () => new Error('broke off'), mayRead: async () => true, filler };
      const reader = streamOf(portions(), parts).getReader();
      const texts_read: string[] = [];
      const read = async (): Promise<void> => {
        for (let part = await reader.read(); !part.done; part = await reader.read())
          texts_read.push(Buffer.from(part.value).toString());
      };
      await vi.advanceTimersByTimeAsync(10 * quiet_max_ms);
      const ended = read();
      await vi.advanceTimersByTimeAsync(2 * quiet_max_ms);
      found.resolve('{}\n');
      await ended;
      expect(texts_read.join('')).toBe(filler === undefined ? '{}\n' : '   {}\n');
    }
  });
});
