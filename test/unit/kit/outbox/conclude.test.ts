/** The end of a task: its report is final, so it never leaves before the journal has the end. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StorageUnavailable } from '../../../../src/platform/errors.ts';
import { openOutbox, type Outbox } from '../../../../src/kit/outbox/live/outbox.ts';
import { type StartStore, startStore } from '../../../../src/kit/outbox/live/store-client.ts';
import { roomy_limits } from '../../../support/kit/connector.ts';
import { eventually } from '../../../support/eventually.ts';
import { taskEntry } from '../../../support/disk/store-lab.ts';
import { steadyClock } from '../../../support/disk/outbox-lab.ts';
import { recordingLog } from '../../../support/recording-log.ts';
import { makeDirectory } from '../../../support/temporary.ts';

const task_id = '00000000-0000-4000-8000-000000000001';
const entry = taskEntry({ task_id });
const report = { channel: `task/${task_id}`, lane: 'task', data: { status: 'completed' } } as const;

let dir: string;
let outbox: Outbox;
let refusing: boolean;
/** Commits that the store was asked for, and what the local parts of the connector were told of. */
let told: string[];

const start: StartStore = async (options) => {
  const { client, opened } = await startStore(options);
  const commit: typeof client.commit = async (work) => {
    if (refusing) throw new StorageUnavailable('the disk is read-only');
    return client.commit(work);
  };
  return { client: { ...client, commit }, opened };
};

beforeEach(async () => {
  dir = await makeDirectory();
  refusing = false;
  told = [];
  outbox = await openOutbox({
    file: join(dir, 'buffer.db'),
    limits: roomy_limits,
    clock: steadyClock(),
    log: recordingLog(),
    startStore: start,
  });
  outbox.onAccepted = ({ channel }) => void told.push(channel);
  outbox.dispatch.connected({
    session_present: true,
    packet_ms: 0,
    ack: 'broker',
    onReady: () => undefined,
  });
});
afterEach(async () => {
  refusing = false;
  await outbox.close();
  await rm(dir, { recursive: true });
});

const nextChannel = (): string | undefined => outbox.dispatch.next({ backlog: true })?.channel;

describe('Final task report', () => {
  it('is stored with the journal entry before it is sent', async () => {
    const { tried, stored } = outbox.conclude(entry, report);
    expect(told).toEqual([]);
    await Promise.all([tried, stored]);
    expect(await outbox.find(task_id)).toMatchObject({ state: 'completed' });
    expect(told).toEqual([report.channel]);
    expect(nextChannel()).toBe(report.channel);
  });

  it('is not sent from memory while disk writes fail, unlike other messages', async () => {
    refusing = true;
    const { tried, stored } = outbox.conclude(entry, report);
    outbox.append({ channel: 'event/x/motion', lane: 'alarm', data: { detected: true } });
    await expect(tried).rejects.toThrow('the disk is read-only');
    await eventually('the alarm leaves', () => nextChannel() === 'event/x/motion');
    expect(nextChannel()).toBeUndefined();
    expect(told).toEqual(['event/x/motion']);
    refusing = false;
    await stored;
    expect(await outbox.find(task_id)).toMatchObject({ state: 'completed' });
    await eventually('the report leaves', () => nextChannel() === report.channel);
    expect(told.at(-1)).toBe(report.channel);
  });
});
