import { describe, expect, it } from 'vitest';
import { downTopic, type Down } from '../../../../src/contract/topics.ts';
import { CommandRefused } from '../../../../src/platform/errors.ts';
import { Inbox, type InboxHandlers } from '../../../../src/kit/uplink/inbox.ts';
import { asset_id, samples } from '../../../support/contract-samples.ts';
import { corpus, isDeceptive } from '../../../support/foreign-text.ts';
import { test_kit } from '../../../support/gps.ts';

const task_id = '00000000-0000-4000-8000-000000000001';

function inbox(handlers: Partial<InboxHandlers>) {
  const said: string[] = [];
  const facts: object[] = [];
  const time = { now_ms: 0 };
  const rooms = { count: 0 };
  const box = new Inbox({
    kit_id: test_kit,
    handlers: {
      task: async () => undefined,
      cancel: () => undefined,
      ack: () => undefined,
      sync: () => undefined,
      config: () => undefined,
      partner: () => undefined,
      file: () => undefined,
      whep: () => undefined,
      ...handlers,
    },
    log: {
      warn: (its, sentence) => {
        said.push(sentence);
        facts.push(its);
      },
    },
    now: () => time.now_ms,
    onRoom: () => (rooms.count += 1),
  });
  const receive = async (down: Down, body: unknown = {}): Promise<boolean> =>
    box.receive({
      topic: downTopic(test_kit, down),
      payload: Buffer.from(JSON.stringify(body)),
      retained: false,
      duplicate: false,
    });
  return { box, receive, said, facts, time, rooms };
}

describe('Inbox', () => {
  it('does not wait for what an acknowledgement of the cloud releases', async () => {
    const { receive } = inbox({ ack: async () => new Promise(() => undefined) });
    expect(await receive({ kind: 'ack' }, { epoch: 1, ranges: [[1, 5]] })).toBe(true);
  });

  it.each(Object.entries(corpus))(
    'cleans a partner asset of the cloud, but not its metadata: %s',
    async (_, text) => {
      const records: unknown[] = [];
      const { receive } = inbox({ partner: (_id, { record }) => void records.push(record) });
      const record = { ...samples['partnerRecord'], name: text, model: text, metadata: { note: 'a\nb' } };
      await receive({ kind: 'partner', asset_id }, { record });
      expect(records).toMatchObject([{ metadata: { note: 'a\nb' } }]);
      const [{ name = '', model = '' } = {}] = records as { name?: string; model?: string }[];
      expect(name).toContain('gate');
      expect(isDeceptive(name + model)).toBe(false);
    },
  );

  it.each([
    ['ack', { epoch: 'x', ranges: [] }, 'epoch: expected number, received string "x"'],
    ['config', { rates_hz: { gps: 'fast' } }, 'rates_hz.gps: expected number, received string "fast"'],
    ['config', 'none', 'expected object, received string "none"'],
  ] as const)(
    'names the fault and the value of a message that breaks the contract: %s (%#)',
    async (kind, body, reason) => {
      const { receive, facts } = inbox({});
      expect(await receive({ kind }, body)).toBe(true);
      expect(facts).toEqual([{ topic: downTopic(test_kit, { kind }), reason }]);
    },
  );

  it('acknowledges a dispatch only once it is journaled', async () => {
    const journaled = Promise.withResolvers<undefined>();
    const { receive } = inbox({ task: async () => journaled.promise });
    let isDone = false;
    const received = receive({ kind: 'task', task_id }).then((acknowledge) => {
      isDone = true;
      return acknowledge;
    });
    expect(await receive({ kind: 'sync' })).toBe(true);
    expect(isDone).toBe(false);
    journaled.resolve(undefined);
    expect(await received).toBe(true);
  });

  it('marks dispatches that the broker may have kept while the kit was offline', async () => {
    const queued: boolean[] = [];
    const { box, receive } = inbox({ task: async (_, meta) => void queued.push(meta.queued) });
    await receive({ kind: 'task', task_id });
    box.connected({ session_present: true });
    await receive({ kind: 'task', task_id });
    box.connected({ session_present: false });
    await receive({ kind: 'task', task_id });
    expect(queued).toEqual([true, true, false]);
  });

  it('leaves dispatches at the broker while 64 wait for the disk, and requests them once there is room', async () => {
    const journaled = Promise.withResolvers<undefined>();
    const { receive, said, rooms } = inbox({ task: async () => journaled.promise });
    const waiting = Array.from({ length: 64 }, async () => receive({ kind: 'task', task_id }));
    expect(await receive({ kind: 'task', task_id })).toBe(false);
    expect(await receive({ kind: 'task', task_id })).toBe(false);
    expect(said).toHaveLength(1);
    expect(rooms.count).toBe(0);
    journaled.resolve(undefined);
    expect(await Promise.all(waiting)).not.toContain(false);
    expect(rooms.count).toBe(1);
  });

  it('leaves a dispatch at the broker while the connector stops, and keeps the session for the farewell', async () => {
    const { receive, rooms } = inbox({
      task: async () => {
        throw new CommandRefused('the connector is stopping');
      },
    });
    expect(await receive({ kind: 'task', task_id })).toBe(false);
    expect(rooms.count).toBe(0);
  });

  it('rejects when a dispatch cannot be taken in for another reason, so that the session ends', async () => {
    const { receive } = inbox({
      task: async () => {
        throw new Error('journal is broken');
      },
    });
    await expect(receive({ kind: 'task', task_id })).rejects.toThrow('journal is broken');
  });

  it('counts dispatches as kept by the broker for ten seconds after a connection to a session', async () => {
    const queued: boolean[] = [];
    const { box, receive, time } = inbox({ task: async (_, meta) => void queued.push(meta.queued) });
    box.connected({ session_present: true });
    time.now_ms += 9_999;
    await receive({ kind: 'task', task_id });
    time.now_ms += 1;
    await receive({ kind: 'task', task_id });
    expect(queued).toEqual([true, false]);
  });

  it('acknowledges the empty payload that clears a retained dispatch, and ignores it', async () => {
    let dispatches = 0;
    const { box } = inbox({ task: async () => void (dispatches += 1) });
    const topic = downTopic(test_kit, { kind: 'task', task_id });
    const empty = { topic, payload: Buffer.alloc(0), retained: true, duplicate: false };
    expect(await box.receive(empty)).toBe(true);
    expect(dispatches).toBe(0);
  });

  it('passes the flags of a dispatch and its payload on as they came', async () => {
    const tasks: unknown[] = [];
    const { box } = inbox({ task: async (raw, meta) => void tasks.push([raw, meta]) });
    box.connected({ session_present: false });
    const payload = Buffer.from('no JSON');
    await box.receive({
      topic: downTopic(test_kit, { kind: 'task', task_id }),
      payload,
      retained: true,
      duplicate: true,
    });
    expect(tasks).toEqual([
      [payload, { task_id_in_topic: task_id, retained: true, duplicate: true, queued: false }],
    ]);
  });

  it('ignores a retained cancel, which would cancel a task of the future', async () => {
    const cancelled: string[] = [];
    const { box, receive, said } = inbox({ cancel: (id) => void cancelled.push(id) });
    const topic = downTopic(test_kit, { kind: 'cancel', task_id });
    await box.receive({ topic, payload: Buffer.from('{}'), retained: true, duplicate: false });
    expect(cancelled).toEqual([]);
    expect(said).toHaveLength(1);
    await receive({ kind: 'cancel', task_id });
    expect(cancelled).toEqual([task_id]);
  });

  it.each([
    ['an acknowledgement', 'ack', { epoch: 0, ranges: [] }],
    ['a configuration', 'config', { rates_hz: 'all' }],
  ] as const)('acknowledges and logs %s that does not fit the contract', async (_, kind, body) => {
    let handled = 0;
    const count = (): void => void (handled += 1);
    const { receive, said } = inbox({ ack: count, config: count });
    expect(await receive({ kind }, body)).toBe(true);
    expect(said).toHaveLength(1);
    expect(handled).toBe(0);
  });

  it('reads no payload above 256 KiB', async () => {
    let handled = 0;
    const { receive, said } = inbox({ config: () => void (handled += 1) });
    expect(await receive({ kind: 'config' }, { filler: 'x'.repeat(256 * 1024) })).toBe(true);
    expect({ handled, lines: said.length }).toEqual({ handled: 0, lines: 1 });
  });

  it('acknowledges a message on a topic that the contract does not have', async () => {
    const { box, said } = inbox({});
    const topic = `k1/${test_kit}/down/unknown`;
    expect(await box.receive({ topic, payload: Buffer.from('{}'), retained: false, duplicate: false })).toBe(
      true,
    );
    expect(said).toHaveLength(1);
  });

  it('logs what an acknowledgement could not release, and accepts the next one', async () => {
    const { receive, said } = inbox({ ack: async () => Promise.reject(new Error('disk full')) });
    expect(await receive({ kind: 'ack' }, { epoch: 1, ranges: [[1, 5]] })).toBe(true);
    await Promise.resolve();
    expect(said).toHaveLength(1);
  });

  it('hands on a viewer of video, and whether the broker may have kept it, and never a retained one', async () => {
    const viewers: object[] = [];
    const { box, receive, said, time } = inbox({
      whep: (request, how) => void viewers.push({ ...request, ...how }),
    });
    const request = { id: task_id, asset_id, offer: 'v=0\r\n' };
    box.connected({ session_present: true });
    await receive({ kind: 'whep' }, request);
    time.now_ms = 60_000;
    await receive({ kind: 'whep' }, { ...request, offer: null });
    expect(viewers).toEqual([
      { ...request, queued: true },
      { ...request, offer: null, queued: false },
    ]);
    const topic = downTopic(test_kit, { kind: 'whep' });
    const payload = Buffer.from(JSON.stringify(request));
    await box.receive({ topic, payload, retained: true, duplicate: false });
    expect([viewers.length, said.length]).toEqual([2, 1]);
  });
});
