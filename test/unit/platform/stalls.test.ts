/** Deadlines and silences after a stall of this process, during which answers arrive that it cannot read. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { own_stalls, silenceSince, Stalls } from '../../../src/platform/stalls.ts';
import { deadline, sleep, within } from '../../../src/platform/time.ts';

/** Runs nothing else for `ms`. */
function stall(ms: number): void {
  const until_ms = performance.now() + ms;
  while (performance.now() < until_ms);
}

/** A connection on the loopback, and its other end. */
async function pair() {
  const joined = Promise.withResolvers<Socket>();
  const server = createServer(joined.resolve).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const near = connect(port, '127.0.0.1');
  const far = await joined.promise;
  onTestFinished(() => {
    near.destroy();
    far.destroy();
    server.close();
  });
  return { near, far };
}

describe('A deadline', () => {
  it('counts an answer that arrived during a stall, though its time is over', async () => {
    const { near, far } = await pair();
    far.write('answer');
    const answer = within(50, once(near, 'data'));
    stall(150);
    expect(String(await answer)).toBe('answer');
  });

  it('ends a wait without an answer after a stall too, and not when it is cancelled', async () => {
    const never = new Promise<string>(() => undefined);
    const answer = within(10, never);
    let isExpired = false;
    const cancel = deadline(10, () => {
      isExpired = true;
    });
    stall(150);
    cancel();
    expect(await answer).toBeUndefined();
    expect(isExpired).toBe(false);
  });
});

describe('A silence', () => {
  it('adds up between stalls, so that a process that stalls again and again notices it', async () => {
    const end = new AbortController();
    onTestFinished(() => end.abort());
    const stalls = new Stalls();
    const last_ms = performance.now();
    stalls.watch(end.signal);
    stall(520);
    await sleep(1_000, end.signal);
    stall(520);
    const silence_ms = stalls.silenceSince(last_ms, performance.now() + 800);
    // 0.5 s after the first, less what the second may have begun before its end was looked for, and 0.3 s after the second.
    expect(silence_ms).toBeGreaterThan(400);
    expect(silence_ms).toBeLessThan(performance.now() + 800 - last_ms - 2 * 1_000);
  });

  it('does not count a stall, and what came after it counts from there', async () => {
    const end = new AbortController();
    onTestFinished(() => end.abort());
    const last_ms = performance.now();
    own_stalls.watch(end.signal);
    stall(600);
    const silence_ms = silenceSince(last_ms);
    expect(performance.now() - last_ms).toBeGreaterThanOrEqual(600);
    expect(silence_ms).toBeLessThan(performance.now() - last_ms - 500);
    const later_ms = performance.now();
    expect(silenceSince(later_ms, later_ms + 5_000)).toBeCloseTo(5_000);
  });
});
