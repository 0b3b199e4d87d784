/** Reads the list of channels of a recorder or a camera with several lenses: names, models, and which are online. */
import { z } from 'zod';
import { DeviceUnreachable } from '../../../src/platform/errors.ts';
import { genuine, type HostFacts, orNull, text } from './describe.ts';
import type { Device } from '../host/device.ts';
import { type Command, faultIn, type Outcome, valueOf } from '../host/replies.ts';
import { texts } from '../texts.ts';

export interface ChannelFacts {
  readonly channel: number;
  readonly name: string;
  readonly model: string | null;
  readonly firmware: string | null;
  readonly uid: string | null;
  /** Another channel has the same camera: both lenses of a Duo. */
  readonly isUidShared: boolean;
  readonly online: boolean;
  /** A battery camera is asleep; requests would wake it. */
  readonly asleep: boolean;
}

const channelStatus = z.looseObject({
  status: z.array(
    z.looseObject({
      channel: z.int().min(0).max(255),
      name: text,
      online: z.number().catch(0),
      typeInfo: text,
      uid: text,
      sleep: z.number().catch(0),
    }),
  ),
});
const typeInfoReply = z.looseObject({ typeInfo: text, firmVer: text });
const osdReply = z.looseObject({ Osd: z.looseObject({ osdChannel: z.looseObject({ name: text }) }) });

export const channelStatusCommand: Command = { cmd: 'GetChannelstatus', param: {} };

export interface ChannelList {
  readonly channels: readonly ChannelFacts[];
  /** Whether the device reports which channels are online; else all count as such. */
  readonly isReported: boolean;
  /** Text of the list as reported, without details, to see a change. */
  readonly shape: string;
}

/** Reads the list. Without GetChannelstatus, as on cameras with two lenses, all channels are in use. Rejects while it cannot be read. */
export async function readChannels(
  device: Pick<Device, 'ask' | 'askOne'>,
  facts: HostFacts,
): Promise<ChannelList> {
  const status = await device.askOne(channelStatusCommand);
  const fault = faultIn(status);
  const isMissing =
    fault?.kind === 'unsupported' || fault?.kind === 'bad_request' || fault?.kind === 'forbidden';
  const reported = channelsOf(status);
  if (!reported && !isMissing) throw new DeviceUnreachable(texts.no_channels);
  const channels =
    reported ?? Array.from({ length: facts.channel_count }, (_none, channel) => unreported(channel));
  return {
    channels: await withDetails(device, facts, channels),
    isReported: reported !== undefined,
    shape: JSON.stringify(reported ?? []),
  };
}

/** The channels in use; undefined when the reply is invalid. */
export function channelsOf(outcome: Outcome | undefined): readonly ChannelFacts[] | undefined {
  const status = valueOf(outcome, channelStatus)?.status;
  return status
    ?.filter(({ name, typeInfo, online }) => online === 1 || name !== '' || typeInfo !== '')
    .map(({ channel, name, online, typeInfo, uid, sleep }) => ({
      channel,
      name,
      model: orNull(typeInfo),
      firmware: null,
      uid: genuine(uid) ?? null,
      isUidShared: status.filter((each) => each.uid === uid).length > 1,
      online: online === 1,
      asleep: sleep === 1,
    }));
}

/** A channel of which nothing is listed. */
export function unreported(channel: number): ChannelFacts {
  return {
    channel,
    name: '',
    model: null,
    firmware: null,
    uid: null,
    isUidShared: false,
    online: true,
    asleep: false,
  };
}

/** Asks the channels that can answer for model, firmware and a missing name. A sleeping camera is not woken for it. */
async function withDetails(
  device: Pick<Device, 'ask'>,
  facts: HostFacts,
  channels: readonly ChannelFacts[],
): Promise<readonly ChannelFacts[]> {
  const awake = channels.filter(({ online, asleep }) => online && !asleep);
  const nameless = awake.filter(({ name }) => isNumber(name));
  const answers =
    awake.length === 0
      ? []
      : await device.ask([
          ...awake.map(({ channel }) => question('GetChnTypeInfo', channel)),
          ...nameless.map(({ channel }) => question('GetOsd', channel)),
        ]);
  return channels.map((channel) => {
    const at = awake.indexOf(channel);
    const type = at < 0 ? undefined : valueOf(answers[at], typeInfoReply);
    const osd = nameless.indexOf(channel);
    const shown = osd < 0 ? '' : (valueOf(answers[awake.length + osd], osdReply)?.Osd.osdChannel.name ?? '');
    return {
      ...channel,
      name: nameOf(facts, channel, shown),
      model: channel.model ?? orNull(type?.typeInfo ?? ''),
      firmware: orNull(type?.firmVer ?? ''),
    };
  });
}

/** Lenses of a camera are often called "1" and "2". */
function nameOf(facts: HostFacts, { name, channel }: ChannelFacts, shown: string): string {
  if (!isNumber(name)) return name;
  return isNumber(shown) ? `${facts.name} ${channel + 1}` : shown;
}

function isNumber(name: string): boolean {
  return /^\d*$/u.test(name);
}

function question(cmd: string, channel: number): Command {
  return { cmd, action: 0, param: { channel } };
}

/** Uses the UID of the camera, which may move to another channel; else the channel number. */
export function channelKey(recorder_key: string, { uid, channel, isUidShared }: ChannelFacts): string {
  if (uid === null) return `${recorder_key}:channel-${channel}`;
  return isUidShared ? `vendorcam:uid-${uid}:channel-${channel}` : `vendorcam:uid-${uid}`;
}
