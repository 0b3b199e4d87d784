/** How the channels of a host are asked when its firmware does not offer everything, or not now. */
import { expect, it } from 'vitest';
import { newAsking, poll } from '../../../../drivers/vendorcam/channels/poll.ts';
import type { Command, Outcome } from '../../../../drivers/vendorcam/host/replies.ts';
import { faultOf } from '../../../../drivers/vendorcam/host/rsp-codes.ts';

/** A host that answers from a table; what is not in it is not supported. */
function hostWith(answers: Readonly<Record<string, unknown>>) {
  const asked: string[] = [];
  const ask = async (commands: readonly Command[]): Promise<readonly Outcome[]> =>
    commands.map(({ cmd }) => {
      asked.push(cmd);
      return cmd in answers ? { value: answers[cmd] } : { fault: faultOf(-9, '') };
    });
  return { ask, asked };
}

/** The same host, with what it answers to GetEvents. */
function refusing(code: number) {
  const host = hostWith(old_firmware);
  const ask = async (commands: readonly Command[]): Promise<readonly Outcome[]> => {
    const outcomes = await host.ask(commands);
    return outcomes.map((outcome, index) =>
      commands[index]?.cmd === 'GetEvents' ? { fault: faultOf(code, '') } : outcome,
    );
  };
  return { ...host, ask };
}

const old_firmware = { GetMdState: { state: 1 }, GetAiState: { channel: 0, people: 1 } };

it('asks a camera that refuses GetEvents in the older way, from the next poll on', async () => {
  const host = hostWith(old_firmware);
  const asking = newAsking(0);
  expect((await poll(host, [asking], { hasChannelList: false })).seen.size).toBe(0);
  const { seen } = await poll(host, [asking], { hasChannelList: false });
  expect(seen.get(0)).toMatchObject({ alarms: { motion: true, ai: ['people'] } });
  await poll(host, [asking], { hasChannelList: false });
  expect(host.asked.filter((cmd) => cmd === 'GetEvents')).toHaveLength(1);
});

it('tries GetEvents again after a while: the camera may only have been busy', async () => {
  const asking = newAsking(0);
  await poll(hostWith(old_firmware), [asking], { hasChannelList: false });
  const minutes = (asking.events_again_mono_ms - performance.now()) / 60_000;
  expect(minutes).toBeGreaterThan(9);
  expect(minutes).toBeLessThanOrEqual(10);
  asking.events_again_mono_ms = performance.now();
  const host = hostWith({
    GetEvents: { md: { alarm_state: 0, support: 0 }, ai: { other: { alarm_state: 1 } } },
  });
  const { seen } = await poll(host, [asking], { hasChannelList: false });
  expect(seen.get(0)).toMatchObject({ alarms: { motion: true, ai: null } });
  expect(host.asked).toEqual(['GetEvents']);
});

it.each([-1, -4, -8, -12, -13, -17, -26])(
  'asks a camera that answers %s to GetEvents twice in the older way, and GetEvents again later',
  async (code) => {
    const host = refusing(code);
    const asking = newAsking(0);
    expect((await poll(host, [asking], { hasChannelList: false })).seen.get(0)).toMatchObject({
      fault: { code },
    });
    await poll(host, [asking], { hasChannelList: false });
    const { seen } = await poll(host, [asking], { hasChannelList: false });
    expect(seen.get(0)).toMatchObject({ alarms: { motion: true, ai: ['people'] } });
    const again_ms = asking.events_again_mono_ms - performance.now();
    expect(again_ms).toBeGreaterThan(50_000);
    expect(again_ms).toBeLessThanOrEqual(600_000);
  },
);
