import { beforeEach, describe, expect, it } from 'vitest';
import { byValue, dispatchScene, numbers, soon } from '../../../../support/disk/dispatch-scene.ts';
import { messagesIn } from '../../../../support/disk/outbox-lab.ts';
import type { Lane } from '../../../../../src/contract/lanes.ts';
import { texts } from '../../../../../src/kit/outbox/texts.ts';

const scene = dispatchScene();
const { heard } = scene;

describe('Dispatch with a broker connection', () => {
  beforeEach(() => scene.lab.connect());

  it('sends telemetry at once without writing it to disk', async () => {
    scene.lab.send('feed', 1);
    const outgoing = scene.next();
    expect(outgoing && numbers([outgoing])).toEqual([1]);
    if (outgoing) heard(outgoing);
    await scene.lab.outbox.flush();
    expect(scene.lab.outbox.depth().get('feed')?.rows).toBe(0);
  });

  it('sends what may wait after the alarm before it, after all telemetry, and at the pace of the backlog', async () => {
    scene.lab.send('alarm', 1);
    const data = { n: 2 };
    const channel = 'feed/00000000-0000-4000-8000-000000000001/alarm_picture';
    scene.lab.outbox.append({ lane: 'feed', channel, data, is_behind: true });
    // The alarm waits for its disk, and the picture for the alarm.
    expect(scene.next()).toBeUndefined();
    await scene.lab.outbox.committed();
    scene.lab.send('feed', 3);
    const urgent = scene.next();
    expect(urgent && numbers([urgent])).toEqual([1]);
    if (urgent) heard(urgent);
    const live = scene.next();
    expect(live && numbers([live])).toEqual([3]);
    expect(scene.lab.outbox.dispatch.next({ backlog: false })).toBeUndefined();
    const behind = scene.next();
    expect(behind && numbers([behind])).toEqual([2]);
    expect(behind).toMatchObject({ backlog: true, channel });
    for (const each of [live, behind]) if (each) heard(each);
    await soon(() => scene.lab.outbox.ledger().delivered === 3);
  });

  it('sends a task report only after it is on disk, before telemetry that was accepted earlier', async () => {
    scene.lab.send('feed', 1);
    scene.lab.send('task', 2);
    const first = scene.next();
    expect(first && numbers([first])).toEqual([1]);
    scene.lab.send('feed', 3);
    await scene.lab.outbox.committed();
    const second = scene.next();
    expect(second && numbers([second])).toEqual([2]);
    expect(scene.lab.outbox.depth().get('task')?.rows).toBe(1);
  });

  it('counts an acknowledged message as delivered and deletes it from disk', async () => {
    scene.lab.send('alarm', 1);
    await scene.lab.pump(heard);
    await soon(() => scene.lab.outbox.ledger().delivered === 1);
    await soon(() => scene.lab.outbox.depth().get('alarm')?.rows === 0);
  });

  it('writes telemetry that is not acknowledged within a second, without sending it twice', async () => {
    scene.lab.send('feed', 1);
    const outgoing = scene.next();
    await soon(() => scene.lab.outbox.depth().get('feed')?.rows === 1);
    expect(scene.next()).toBeUndefined();
    if (outgoing) heard(outgoing);
    await soon(() => scene.lab.outbox.depth().get('feed')?.rows === 0);
    expect(scene.lab.outbox.ledger()).toMatchObject({ accepted: 1, delivered: 1, buffered: 0 });
  });

  it('quarantines a refused message with its reason and can retry it', async () => {
    scene.lab.send('feed', 1);
    scene.lab.send('alarm', 2);
    await scene.lab.pump((outgoing) =>
      scene.lab.outbox.dispatch.quarantine(outgoing, 0x87, 'not authorised'),
    );
    await soon(() => scene.lab.outbox.ledger().quarantined === 2);
    const quarantine = await scene.lab.outbox.quarantine.list();
    expect(quarantine.map(({ code, reason }) => [code, reason])).toEqual([
      [0x87, 'not authorised'],
      [0x87, 'not authorised'],
    ]);
    expect(await scene.lab.outbox.quarantine.retry(undefined)).toBe(2);
    expect(numbers(await scene.lab.pump(heard)).sort(byValue)).toEqual([1, 2]);
  });

  it('keeps a message without subscribers, pauses its kind and sends other kinds', async () => {
    scene.lab.send('feed', 1);
    await scene.lab.pump(
      (outgoing) => scene.lab.outbox.dispatch.acknowledged(outgoing, { hasSubscribers: false }),
      () => scene.lab.outbox.dispatch.withoutSubscribers().length > 0,
    );
    expect(scene.lab.outbox.dispatch.withoutSubscribers()).toEqual(['feed']);
    scene.lab.send('feed', 2);
    scene.lab.send('alarm', 3);
    const others = await scene.lab.pump(
      heard,
      () => scene.lab.outbox.dispatch.withoutSubscribers().length === 0,
    );
    expect(numbers(others)).toContain(3);
    expect([...new Set(numbers([...others, ...(await scene.lab.pump(heard))]))].sort(byValue)).toEqual([
      1, 2, 3,
    ]);
  });

  it('counts a retained message without subscribers as delivered', async () => {
    scene.lab.send('presence', 1);
    await scene.lab.pump((outgoing) =>
      scene.lab.outbox.dispatch.acknowledged(outgoing, { hasSubscribers: false }),
    );
    await soon(() => scene.lab.outbox.ledger().delivered === 1);
    expect(scene.lab.outbox.dispatch.withoutSubscribers()).toEqual([]);
  });

  it('drops a message above the size limit with its reason and sends the others', async () => {
    scene.lab.outbox.append({ lane: 'feed', channel: 'feed/a/gps', data: { text: 'x'.repeat(300_000) } });
    scene.lab.send('feed', 2);
    expect(numbers(await scene.lab.pump(heard))).toEqual([2]);
    expect(scene.lab.outbox.ledger().dropped).toEqual({ too_large: 1 });
    expect(scene.lab.lines).toContain(texts.too_large);
  });
});

describe('Dispatch without a broker connection', () => {
  it('keeps all messages and returns them after a restart by importance, oldest first', async () => {
    for (let n = 0; n < 20; n += 1) scene.lab.send('feed', n);
    scene.lab.send('alarm', 100);
    scene.lab.send('task', 200);
    await scene.reopen();
    scene.lab.connect();
    const messages = await scene.lab.pump(heard);
    expect(numbers(messages)).toEqual([200, 100, ...Array.from({ length: 20 }, (_, n) => n)]);
    expect(messages.every(({ backlog }) => backlog)).toBe(true);
    expect(messages.at(-1)?.channel).toBe('batch');
  });

  it('keeps only the newest message of a retained topic', async () => {
    for (let n = 0; n < 5; n += 1) scene.lab.send('presence', n);
    await scene.lab.outbox.committed();
    scene.lab.connect();
    expect(numbers(await scene.lab.pump(heard))).toEqual([4]);
    expect(scene.lab.outbox.ledger().dropped).toEqual({ superseded: 4 });
  });

  it('sends live messages before a backlog that still gets its share', async () => {
    await scene.reopen({ batch_rows: 1 });
    for (let n = 0; n < 3_000; n += 1) scene.lab.send('feed', n);
    await scene.lab.outbox.flush();
    scene.lab.connect();
    await soon(() => scene.next() !== undefined);
    for (let n = 0; n < 40; n += 1) scene.lab.send('feed', 10_000 + n);
    const next = Array.from({ length: 40 }, () => scene.next());
    const backlog = next.filter((outgoing) => outgoing?.backlog).length;
    expect(backlog).toBeGreaterThanOrEqual(3);
    expect(backlog).toBeLessThanOrEqual(5);
  });
});

describe('Dispatch while disk writes fail', () => {
  it('counts messages of each lane in memory, and on disk after writes resume', async () => {
    scene.disk.refuse();
    scene.lab.send('feed', 1);
    scene.lab.send('feed', 2);
    scene.lab.send('alarm', 3);
    await soon(() => scene.lab.outbox.health().state === 'failing');
    const shown = (lane: Lane) => scene.lab.outbox.depth().get(lane);
    await soon(() => shown('feed')?.memory_rows === 2);
    expect(shown('feed')).toMatchObject({ rows: 0, memory_rows: 2 });
    await soon(() => shown('alarm')?.memory_rows === 1);
    scene.disk.heal();
    await soon(() => shown('feed')?.rows === 2 && shown('alarm')?.rows === 1);
    expect([shown('feed')?.memory_rows, shown('alarm')?.memory_rows]).toEqual([0, 0]);
  });
});

describe('Batch size', () => {
  it('shrinks after each refusal down to single messages', async () => {
    for (let n = 0; n < 64; n += 1) scene.lab.send('feed', n);
    await scene.lab.outbox.flush();
    scene.lab.connect();
    const sizes: number[] = [];
    const got: unknown[] = [];
    await scene.lab.pump(
      (outgoing) => {
        sizes.push(outgoing.rows);
        if (outgoing.rows > 1) return scene.lab.outbox.dispatch.refused(outgoing, 0x95, 'too large');
        got.push(...numbers([outgoing]));
        return heard(outgoing);
      },
      () => got.length === 64,
    );
    expect(Math.max(...sizes)).toBe(64);
    expect(got.toSorted(byValue)).toEqual(Array.from({ length: 64 }, (_, n) => n));
    for (let n = 0; n < 400; n += 1) scene.lab.send('feed', n);
    scene.lab.outbox.dispatch.disconnected();
    scene.lab.connect();
    const later = await scene.lab.pump(heard);
    expect(Math.max(...later.map(({ rows }) => rows))).toBeGreaterThan(1);
  });

  it('packs live telemetry once a second on metered links', async () => {
    scene.lab.connect({ packet_ms: 1_000 });
    for (let n = 0; n < 30; n += 1) scene.lab.send('feed', n);
    expect(scene.next()).toBeUndefined();
    const messages = await scene.lab.pump(heard, () => scene.lab.outbox.dispatch.live_rows === 0);
    expect(messages.map(({ rows, backlog }) => [rows, backlog])).toEqual([[30, false]]);
    await soon(() => scene.lab.outbox.ledger().delivered === 30);
  });
});

describe('Dispatch while the link in use changes', () => {
  it('follows the pace of the link during one connection', async () => {
    scene.lab.connect();
    scene.lab.send('feed', 0);
    expect(scene.lab.outbox.dispatch.next({ backlog: false })?.rows).toBe(1);
    scene.lab.outbox.dispatch.setPacketMs(1_000);
    for (let n = 1; n < 30; n += 1) scene.lab.send('feed', n);
    expect(scene.lab.outbox.dispatch.next({ backlog: false })).toBeUndefined();
    scene.lab.outbox.dispatch.setPacketMs(0);
    expect(scene.lab.outbox.dispatch.next({ backlog: false })?.rows).toBe(1);
  });
});

describe('Dispatch after clock synchronisation', () => {
  it('corrects the times of earlier messages in memory and on disk', async () => {
    let synced = false;
    const clock = {
      boot_id: 'b',
      stamp: () => ({ time_ms: synced ? 1_900_000_000_000 : 1_000, mono_ms: 5_000, synced }),
    };
    await scene.reopen({ clock });
    scene.lab.send('feed', 1);
    await scene.lab.outbox.flush();
    synced = true;
    await soon(async () => {
      scene.lab.connect();
      let taken = 0;
      const sent = await scene.lab.pump(
        () => (taken += 1),
        () => taken > 0,
      );
      const [message] = sent.flatMap(messagesIn);
      scene.lab.outbox.dispatch.disconnected();
      return message?.time_quality === 'corrected' && message.time_ms === 1_900_000_000_000;
    });
  });
});
