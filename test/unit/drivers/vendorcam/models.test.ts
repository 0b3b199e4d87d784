/** Named Reolink models: what their published replies become, from the description to a poll. */
import { describe, expect, it } from 'vitest';
import { readChannels } from '../../../../drivers/vendorcam/channels/channel-list.ts';
import { describeHost, streamOf } from '../../../../drivers/vendorcam/channels/describe.ts';
import { newAsking, poll } from '../../../../drivers/vendorcam/channels/poll.ts';
import { presetsIn, presetsQuestion } from '../../../../drivers/vendorcam/commands/presets.ts';
import { type Command, type Outcome, readReplies } from '../../../../drivers/vendorcam/host/replies.ts';
import { limits } from '../../../../drivers/vendorcam/limits.ts';
import { vendorcamOptions } from '../../../../drivers/vendorcam/options.ts';
import { reolink_models, type ReolinkModel } from '../../../support/cameras/reolink-models.ts';

const [options] = vendorcamOptions.parse({
  hosts: [{ name: 'host', host: '10.1.1.9', username: 'kit', password_file: '/p' }],
}).hosts;
if (!options) throw new Error('no host');

/** Answers from the replies of the model, as text that the driver reads. */
function deviceOf({ replies }: ReolinkModel) {
  const answer = ({ cmd, param }: Command): object => {
    const value = replies[`${cmd} ${Number(param?.['channel'])}`] ?? replies[cmd] ?? -9;
    if (typeof value !== 'number') return { cmd, code: 0, value };
    return { cmd: 'Unknown', code: 1, error: { detail: 'not support', rspCode: value } };
  };
  const ask = async (commands: readonly Command[]): Promise<readonly Outcome[]> =>
    readReplies(JSON.stringify(commands.map(answer)));
  return {
    ask,
    askOne: async (command: Command): Promise<Outcome> => {
      const [outcome] = await ask([command]);
      if (!outcome) throw new Error('no answer');
      return outcome;
    },
  };
}

describe.each(reolink_models)('$model with $firmware ($special; $source)', (row) => {
  const device = deviceOf(row);
  const { expected } = row;

  it('is described with its identity, its channels and what it can do', async () => {
    const facts = await describeHost(device, options, limits);
    expect(facts).toMatchObject({
      asset_keys: expected.asset_keys,
      firmware: row.firmware,
      isRecorder: expected.isRecorder ?? false,
      push_port: 9_000,
    });
    const has = Object.entries(facts.abilities.ofChannel(0)).filter(([, isThere]) => isThere);
    expect(has.map(([name]) => name).toSorted()).toEqual(expected.abilities);
    expect(
      streamOf((await device.ask([{ cmd: 'GetRtspUrl', param: { channel: 0 } }]))[0], 0, {
        options,
        password: 'p',
        rtsp_port: facts.rtsp_port ?? 0,
      })?.rtsp_url,
    ).toBe(`rtsp://kit:p@10.1.1.9:554${expected.stream}`);
    const presets = presetsIn(await device.askOne(presetsQuestion(0)));
    expect(presets?.map(({ id, name }) => `${id} ${name}`)).toEqual(expected.presets);
    const { channels } = facts.isRecorder ? await readChannels(device, facts) : { channels: [] };
    expect(channels.map(({ name, model }) => [name, model])).toEqual(expected.channels ?? []);
  });

  it('is polled for what it sees, in the way that its firmware has', async () => {
    const asking = newAsking(0);
    const polls = { hasChannelList: expected.channels !== undefined };
    const first = (await poll(device, [asking], polls)).seen.get(0);
    const seen = first ?? (await poll(device, [asking], polls)).seen.get(0);
    const { motion, ai, fitted } = expected;
    expect(seen).toMatchObject({ alarms: { motion, ai, fitted } });
    expect(asking.hasEvents).toBe(first !== undefined);
  });
});
