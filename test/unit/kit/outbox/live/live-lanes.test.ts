import { describe, expect, it } from 'vitest';
import { LiveLanes } from '../../../../../src/kit/outbox/live/queue.ts';
import { Fifo } from '../../../../../src/kit/outbox/live/fifo.ts';
import { live } from '../../../../support/disk/messages.ts';

describe('LiveLanes', () => {
  it('returns tasks, presence and alarms before telemetry, each lane in order', () => {
    const lanes = new LiveLanes();
    const all = [live('feed'), live('alarm'), live('task'), live('presence'), live('task')];
    for (const each of all) lanes.push(each);
    const order = [
      lanes.shiftUrgent(),
      lanes.shiftUrgent(),
      lanes.shiftUrgent(),
      lanes.shiftUrgent(),
      lanes.shiftUrgent(),
    ];
    expect(order.map((each) => each && all.indexOf(each))).toEqual([2, 4, 3, 1, undefined]);
    expect(lanes.shiftTelemetry()).toBe(all[0]);
    expect(lanes.rows).toBe(0);
  });

  it('spills lazy messages that waited too long to disk, but no sync messages', () => {
    const lanes = new LiveLanes();
    const [old, task, young] = [live('feed'), live('task'), live('feed', { since_ms: 900 })];
    for (const each of [old, task, young]) lanes.push(each);
    expect(lanes.shiftOverdue(1_001, 1_000)).toEqual([old]);
    expect(lanes.rows).toBe(2);
  });

  it('holds at most its limit and spills the oldest telemetry first', () => {
    const lanes = new LiveLanes();
    const task = live('task');
    lanes.push(task);
    for (let n = 0; n < 5_000; n += 1) lanes.push(live('feed'));
    const out = lanes.shiftOverdue(0, Infinity);
    expect(lanes.full).toBe(false);
    expect(lanes.rows).toBeLessThan(4_096);
    expect(out.every(({ row }) => row.lane === 'feed')).toBe(true);
    expect(out.map(({ row }) => row.id)).toEqual(out.map(({ row }) => row.id).toSorted((a, b) => a - b));
    expect(lanes.shiftUrgent()).toBe(task);
  });

  it('makes a packet once its oldest message has waited, including later messages', () => {
    const lanes = new LiveLanes();
    lanes.push(live('feed'));
    lanes.push(live('kit', { since_ms: 800 }));
    expect(lanes.shiftPacket(999, 1_000, 500)).toEqual([]);
    expect(lanes.shiftPacket(1_000, 1_000, 500)).toHaveLength(2);
    expect(lanes.shiftPacket(9_000, 1_000, 500)).toEqual([]);
  });
});

describe('Fifo', () => {
  it('keeps its order while it is filled and emptied in turn', () => {
    const fifo = new Fifo<number>();
    const out: number[] = [];
    for (let n = 0; n < 10_000; n += 1) {
      fifo.push(n);
      if (n % 3 === 0) out.push(fifo.shift() ?? -1);
    }
    expect(fifo.length).toBe(10_000 - out.length);
    out.push(...fifo.drain());
    expect(out).toEqual(Array.from({ length: 10_000 }, (_, n) => n));
    expect(fifo.shift()).toBeUndefined();
  });
});
