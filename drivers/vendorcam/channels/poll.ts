/** One poll of a host: reads the detections of all channels in one batch, and returns the answer or fault of each channel. */
import { type Alarms, alarmsOfEvents, alarmsOfStates } from './alarms.ts';
import { type ChannelFacts, channelsOf, channelStatusCommand } from './channel-list.ts';
import type { Device } from '../host/device.ts';
import { type Command, faultIn, type Outcome } from '../host/replies.ts';
import type { Fault } from '../host/rsp-codes.ts';

/** Polling method of a channel, determined at the first poll of a connection. */
export interface Asking {
  readonly channel: number;
  hasEvents: boolean;
  /** Answers with an error to GetEvents in a row. */
  events_refused: number;
  /** When a refused GetEvents is tried again (monotonic): only it reports infrared sensors and packages. */
  events_again_mono_ms: number;
  hasMotion: boolean;
  hasAi: boolean;
}

export type Seen = { readonly alarms: Alarms } | { readonly fault: Fault };

export interface PollResult {
  /** By channel. */
  readonly seen: ReadonlyMap<number, Seen>;
  /** Without details; undefined for a device without such a list, and when it was not reported. */
  readonly channels: readonly ChannelFacts[] | undefined;
}

/** A busy device may refuse commands that it supports. */
const events_again_ms = 600_000;
const events_passing_ms = 60_000;
/** Some firmware answers GetEvents with another error than "not supported" each time. */
const events_refusals_max = 2;

export function newAsking(channel: number): Asking {
  return {
    channel,
    hasEvents: true,
    events_refused: 0,
    events_again_mono_ms: 0,
    hasMotion: true,
    hasAi: true,
  };
}

/** Rejects when the host as a whole does not answer. */
export async function poll(
  device: Pick<Device, 'ask'>,
  askings: readonly Asking[],
  { hasChannelList }: { readonly hasChannelList: boolean },
): Promise<PollResult> {
  const now_mono_ms = performance.now();
  for (const asking of askings) asking.hasEvents ||= now_mono_ms >= asking.events_again_mono_ms;
  const questions = askings.flatMap(questionsOf);
  const all = hasChannelList ? [channelStatusCommand, ...questions] : questions;
  // Channels without detectors are polled as a liveness check.
  const answers = await device.ask(all.length === 0 ? [{ cmd: 'GetDevInfo', action: 0, param: {} }] : all);
  const byQuestion = new Map(all.map((question, index) => [question, answers[index]]));
  const seen = new Map<number, Seen>();
  let at = hasChannelList ? 1 : 0;
  for (const asking of askings) {
    const count = questionsOf(asking).length;
    const outcomes = new Map(
      all.slice(at, at + count).map((question) => [question.cmd, byQuestion.get(question)]),
    );
    at += count;
    const found = seenBy(asking, outcomes);
    if (found) seen.set(asking.channel, found);
  }
  return { seen, channels: hasChannelList ? channelsOf(byQuestion.get(channelStatusCommand)) : undefined };
}

function questionsOf({ channel, hasEvents, hasMotion, hasAi }: Asking): readonly Command[] {
  const param = { channel };
  if (hasEvents) return [{ cmd: 'GetEvents', action: 0, param }];
  return [
    ...(hasMotion ? [{ cmd: 'GetMdState', action: 0 as const, param }] : []),
    ...(hasAi ? [{ cmd: 'GetAiState', action: 0 as const, param }] : []),
  ];
}

/** Undefined when the next poll must use another method. */
function seenBy(asking: Asking, outcomes: ReadonlyMap<string, Outcome | undefined>): Seen | undefined {
  if (asking.hasEvents) {
    const outcome = outcomes.get('GetEvents');
    const alarms = alarmsOfEvents(outcome);
    if (alarms) {
      asking.events_refused = 0;
      return { alarms };
    }
    const fault = faultIn(outcome);
    if (fault && !isRefusal(asking, fault)) return { fault };
    asking.hasEvents = false;
    const pause_ms = fault?.kind === 'passing' ? events_passing_ms : events_again_ms;
    asking.events_again_mono_ms = performance.now() + pause_ms;
    return undefined;
  }
  const md = outcomes.get('GetMdState');
  const ai = outcomes.get('GetAiState');
  const md_fault = faultIn(md);
  const ai_fault = faultIn(ai);
  if (md_fault?.kind === 'unsupported') asking.hasMotion = false;
  if (ai_fault?.kind === 'unsupported') asking.hasAi = false;
  const fault = [md_fault, ai_fault].find((each) => each && each.kind !== 'unsupported');
  return fault ? { fault } : { alarms: alarmsOfStates(md, ai) };
}

/** Whether GetEvents is refused while the older commands may be answered. */
function isRefusal(asking: Asking, { kind }: Fault): boolean {
  if (kind === 'unsupported') return true;
  if (kind === 'channel_offline') return false;
  asking.events_refused += 1;
  return asking.events_refused >= events_refusals_max;
}
