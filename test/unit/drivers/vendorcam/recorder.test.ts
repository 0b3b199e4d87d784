/** A recorder with its channels: children of their own, each with its own luck. */
import { afterEach, expect, it } from 'vitest';
import { channels as topics } from '../../../../src/contract/topics.ts';
import { assetId } from '../../../../src/contract/identity.ts';
import { kit_id } from '../../../support/kit/hub-lab.ts';
import { elapse } from '../../../support/elapse.ts';
import { eventually } from '../../../support/eventually.ts';
import { vendorcamLab, type VendorcamLab } from '../../../support/cameras/vendorcam-lab.ts';

let lab: VendorcamLab | undefined;
afterEach(async () => {
  await lab?.stop();
  lab = undefined;
});
const recorder = async (channels: number, more: object = {}): Promise<VendorcamLab> => {
  lab = await vendorcamLab({ channels, ...more });
  return lab;
};
const channel = ({ camera }: VendorcamLab, index: number) => {
  const found = camera.channels[index];
  if (!found) throw new Error(`no channel ${index}`);
  return found;
};
const online = async (it: VendorcamLab, count: number): Promise<void> => {
  await eventually(
    `${count} assets are online`,
    () => it.hub.hub.assets().filter(({ status }) => status === 'online').length === count,
  );
};

it('has a child for each channel in use, by the UID of its camera, and reboots only as a whole', async () => {
  const it = await recorder(4);
  Object.assign(channel(it, 3), { name: '', model: '', uid: undefined, online: false });
  Object.assign(channel(it, 2), { uid: undefined });
  it.start();
  await online(it, 4);
  expect(it.hub.hub.assets().map(({ key, name }) => [key, name])).toEqual([
    ['vendorcam:ec71db000001', 'NVR'],
    ['vendorcam:uid-9527000000000001', 'Cam 1'],
    ['vendorcam:uid-9527000000000002', 'Cam 2'],
    ['vendorcam:ec71db000001:channel-2', 'Cam 3'],
  ]);
  const child = it.hub.outbox.on(topics.asset(it.asset('Cam 2')?.id ?? '')).at(-1);
  expect(child).toMatchObject({ parent_id: assetId(kit_id, 'vendorcam:ec71db000001'), model: 'RLC-823A' });
  expect(it.offered('NVR')).toEqual(['reboot']);
  expect(it.offered('Cam 1')).toEqual(['ptz_move', 'ptz_preset', 'set_motion_detection']);
});

it('asks all channels in one request, and tells each what it sees', async () => {
  const it = await recorder(4);
  it.start();
  await online(it, 5);
  channel(it, 1).motion = true;
  await eventually('it is told', () => it.feed('motion', 'Cam 2').at(-1)?.['detected'] === true);
  expect(it.feed('motion', 'Cam 1').at(-1)).toMatchObject({ detected: false });
  const { requests } = it.camera;
  const polls = it.camera.count('GetChannelstatus');
  await eventually('some polls', () => it.camera.count('GetChannelstatus') >= polls + 4);
  expect(it.camera.requests - requests).toBeLessThanOrEqual(it.camera.count('GetChannelstatus') - polls + 1);
});

it('splits what is more than 35 questions', async () => {
  const it = await recorder(40);
  it.start();
  await online(it, 41);
  channel(it, 39).motion = true;
  await eventually('the last is told', () => it.feed('motion', 'Cam 40').at(-1)?.['detected'] === true);
});

it('shows a channel that it does not reach offline, and the others go on', async () => {
  const it = await recorder(2);
  it.start();
  await online(it, 3);
  channel(it, 0).online = false;
  await online(it, 2);
  expect(it.asset('Cam 1')?.reason).toMatch(/recorder/u);
  channel(it, 1).motion = true;
  await eventually('the other is told', () => it.feed('motion', 'Cam 2').at(-1)?.['detected'] === true);
  channel(it, 0).online = true;
  await online(it, 3);
});

it('does not wake a battery camera that sleeps', async () => {
  const it = await recorder(2);
  Object.assign(channel(it, 1), { asleep: true });
  it.start();
  await eventually('it is known', () => it.asset('Cam 2')?.status === 'offline');
  await online(it, 2);
  expect(it.asset('Cam 2')?.reason).toMatch(/asleep to save its battery/u);
  const polls = it.camera.count('GetChannelstatus');
  await eventually('some polls', () => it.camera.count('GetChannelstatus') > polls + 3);
  expect(it.camera.asked.filter(({ param }) => param?.['channel'] === 1)).toEqual([]);
});

it('finds the one command that spoils its batches and leaves it out', async () => {
  const it = await recorder(3);
  it.camera.spoilers.add('GetEvents');
  it.start();
  await online(it, 4);
  channel(it, 2).motion = true;
  await eventually('it is told', () => it.feed('motion', 'Cam 3').at(-1)?.['detected'] === true);
  const asked = it.camera.count('GetEvents');
  await elapse(600);
  expect(it.camera.count('GetEvents')).toBe(asked);
});

it.each([-8, -12, -13, -16, -17, -49, -99, -1, -4, -26])(
  'loses only the one channel that answers %s, and has it again afterwards',
  async (code) => {
    const it = await recorder(2);
    it.start();
    await online(it, 3);
    const error = { code, times: Infinity };
    for (const cmd of ['GetEvents', 'GetMdState', 'GetAiState']) it.camera.errors.set(`${cmd} 0`, error);
    await eventually('it is lost', () => it.asset('Cam 1')?.status === 'offline');
    expect(it.asset('Cam 1')?.reason?.length).toBeGreaterThan(20);
    expect(it.asset('Cam 2')?.status).toBe('online');
    error.times = 0;
    await online(it, 3);
  },
);

it('serves only the channels that the options name', async () => {
  const it = await recorder(3);
  it.start(it.options({ channels: [1], commands: ['ptz_preset'] }));
  await online(it, 2);
  expect(it.hub.hub.assets().map(({ name }) => name)).toEqual(['NVR', 'Cam 2']);
  expect(it.offered('Cam 2')).toEqual(['ptz_preset']);
});

const keys = (it: VendorcamLab): readonly string[] => it.hub.hub.assets().map(({ key }) => key);

it('keeps two channels with one UID apart, as those of a camera with two lenses', async () => {
  const it = await recorder(3);
  // A Duo on a recorder occupies two channels that report one UID (home-assistant/core#135035).
  for (const index of [0, 1]) channel(it, index).uid = 'DUALLENSUID00001';
  it.start();
  await online(it, 4);
  expect(keys(it)).toEqual([
    'vendorcam:ec71db000001',
    'vendorcam:uid-DUALLENSUID00001:channel-0',
    'vendorcam:uid-DUALLENSUID00001:channel-1',
    'vendorcam:uid-9527000000000003',
  ]);
  channel(it, 1).motion = true;
  await eventually('it is told', () => it.feed('motion', 'Cam 2').at(-1)?.['detected'] === true);
  await elapse(600);
  const seen = (name: string) => it.feed('motion', name).filter(({ detected }) => detected === true);
  expect(seen('Cam 2')).toHaveLength(1);
  expect(seen('Cam 1')).toEqual([]);
});

it('serves all channels of a device that does not list them, with model, firmware and name of each', async () => {
  const it = await recorder(2);
  it.camera.kind = 'IPC';
  it.camera.channel_list = 'missing';
  it.camera.camera.name = 'Yard';
  channel(it, 1).osd_name = 'Yard wide';
  it.start();
  await online(it, 3);
  expect(it.hub.hub.assets().map(({ name }) => name)).toEqual(['Yard', 'Yard 1', 'Yard wide']);
  const child = it.hub.outbox.on(topics.asset(it.asset('Yard wide')?.id ?? '')).at(-1);
  expect(child).toMatchObject({ model: 'RLC-823A', firmware: 'v3.1.0.2347' });
  const asked = it.camera.count('GetChannelstatus');
  channel(it, 1).motion = true;
  await eventually('it is told', () => it.feed('motion', 'Yard wide').at(-1)?.['detected'] === true);
  expect(it.camera.count('GetChannelstatus')).toBe(asked);
});

it('has the models of channels that the recorder lists without them', async () => {
  const it = await recorder(2);
  it.camera.channel_list = 'without models';
  it.start();
  await online(it, 3);
  const child = it.hub.outbox.on(topics.asset(it.asset('Cam 1')?.id ?? '')).at(-1);
  expect(child).toMatchObject({ model: 'RLC-823A', firmware: 'v3.1.0.2347' });
});

it('names channels that are called by their number after their camera', async () => {
  const it = await recorder(2);
  for (const [index, each] of it.camera.channels.entries()) each.name = String(index + 1);
  it.start();
  await online(it, 3);
  expect(it.hub.hub.assets().map(({ name }) => name)).toEqual(['NVR', 'NVR 1', 'NVR 2']);
});
