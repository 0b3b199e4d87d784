/** Work on a device that the kernel has not completed. */
import { describe, expect, it } from 'vitest';
import { leaveUnfinished, untilFinished } from '../../../../../drivers/mavlink/links/serial.ts';
import { turn } from '../../../../../src/platform/time.ts';

describe('Unfinished work on a device', () => {
  it('holds back the next attempt at the same device until all of it has settled, however it ends', async () => {
    const closing = Promise.withResolvers<void>();
    const opening = Promise.withResolvers<void>();
    leaveUnfinished('/dev/radio', closing.promise);
    leaveUnfinished('/dev/radio', opening.promise);
    const order: string[] = [];
    const next = untilFinished('/dev/radio').then(() => order.push('next'));
    await untilFinished('/dev/other').then(() => order.push('other device'));
    opening.reject(new Error('no such device'));
    await turn();
    expect(order).toEqual(['other device']);
    closing.resolve();
    await next;
    expect(order).toEqual(['other device', 'next']);
    await untilFinished('/dev/radio');
  });
});
