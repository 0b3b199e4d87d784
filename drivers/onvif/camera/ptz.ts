/** Moves a camera and stops it. */
import { z } from 'zod';
import {
  type Command,
  type CommandContext,
  command_timeout_default_ms,
  defineCommand,
} from '../../../src/driver/command.ts';
import { CommandRefused, notSent } from '../../../src/errors.ts';
import type { OwedStops } from '../../../src/device/owed-stops.ts';
import { sleep } from '../../../src/platform/time.ts';
import { continuousMove, type Motor, move_deadline_ms, profileToken, settled, stop } from './ptz-stop.ts';
import { describe, operation } from '../soap/soap.ts';
import type { SoapOutcome } from '../soap/soap-call.ts';
import { all, attribute, escapeXml, find, textAt } from '../soap/xml.ts';

export interface PtzParts extends Motor {
  /** By profile. */
  readonly owed: OwedStops<string>;
  readonly move_ms: number;
  /** Aborts with the connection and ends every movement. */
  readonly signal: AbortSignal;
  /** Registers each stop in progress, so that the driver waits for it. */
  readonly stopping: (stop: Promise<unknown>) => void;
}

const directions = { up: [0, 1], down: [0, -1], left: [-1, 0], right: [1, 0], stop: [0, 0] } as const;
type Direction = keyof typeof directions;

const speed_default = 0.5;
/** How long the driver checks for the end of a movement. */
const still_within_ms = 3_000;
const preset_within_ms = 20_000;
const presets_max = 512;

const moveInput = z.strictObject({
  direction: z.enum(['up', 'down', 'left', 'right', 'stop']),
  speed: z.number().min(0).max(1).default(speed_default).describe('fraction of the maximum speed; 0 stops'),
});
const presetInput = z.strictObject({
  preset_token: z.string().min(1).max(64).describe("the camera's token of the preset, not its name"),
});

/** Commands of a camera that pans and tilts. They run one at a time. */
export function ptzCommands(parts: PtzParts): readonly Command[] {
  let turn: Promise<unknown> = Promise.resolve();
  /** A new movement begins only when the last one was stopped: its stop must not end this one. */
  const inTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    const mine = turn.then(work);
    turn = mine.catch(() => undefined);
    return mine;
  };
  return [
    defineCommand({
      name: 'ptz_move',
      description: `Pans or tilts for ${parts.move_ms / 1_000} s, then stops; direction "stop" stops at once`,
      risk_level: 'low',
      // The newest command counts, and "stop" must never wait behind a movement.
      safety: true,
      timeout_ms: parts.move_ms + command_timeout_default_ms,
      input: moveInput,
      handle: async (input, context) =>
        inTurn(async () => parts.owed.during(parts.profile, async () => move(parts, input, context))),
    }),
    defineCommand({
      name: 'ptz_preset',
      description: 'Goes to a stored position of the camera',
      risk_level: 'low',
      timeout_ms: 30_000,
      input: presetInput,
      handle: async ({ preset_token }, context) => inTurn(async () => goTo(parts, preset_token, context)),
    }),
  ];
}

async function move(
  parts: PtzParts,
  { direction, speed }: z.output<typeof moveInput>,
  context: CommandContext,
) {
  const signal = AbortSignal.any([context.signal, parts.signal]);
  refuseAborted(signal);
  if (direction === 'stop' || speed === 0) {
    const { stopped } = await stopForSure(parts);
    return { direction: 'stop', stopped };
  }
  if (context.remaining_ms() < parts.move_ms + move_deadline_ms) {
    throw new CommandRefused(notSent('too little time left to move and to stop'));
  }
  const { owed, profile } = parts;
  // On disk before the camera moves: after a power cut the Stop is the first request to it.
  await owed.owe(profile);
  if (signal.aborted) await owed.confirm(profile);
  refuseAborted(signal);
  const begin_ms = performance.now();
  const outcome = await start(parts, direction, speed);
  if (outcome.kind === 'fault') {
    await owed.confirm(profile);
    throw new CommandRefused(`${describe(outcome)}; no movement began`);
  }
  // Without an answer the camera may move nevertheless.
  if (outcome.kind === 'reply') await sleep(parts.move_ms, signal);
  const { stopped, stopped_ms } = await stopForSure(parts);
  if (outcome.kind === 'failure') {
    throw new CommandRefused(`${describe(outcome)}; whether it moved is unknown, a stop was sent`);
  }
  if (signal.aborted) throw new CommandRefused('cancelled; the camera was stopped');
  return { direction, speed, moved_ms: Math.round(stopped_ms - begin_ms), stopped };
}

/** Some cameras refuse a timeout, others accept and ignore it, so the driver always sends the stop. */
async function start(parts: PtzParts, direction: Direction, speed: number): Promise<SoapOutcome> {
  const [x, y] = directions[direction];
  const timeout = `<Timeout>PT${Math.ceil(parts.move_ms / 1_000)}S</Timeout>`;
  const first = await parts.soap.call(continuousMove(parts, [x * speed, y * speed], timeout));
  if (first.kind !== 'fault' || first.code === 'NotAuthorized') return first;
  return parts.soap.call(continuousMove(parts, [x * speed, y * speed], ''));
}

/** Stops the camera, also after the task was aborted, and checks that it stands still. Throws when it may still be moving. */
async function stopForSure(parts: PtzParts) {
  const work = stop(parts);
  parts.stopping(work.catch(() => undefined));
  const refusal = await work;
  const stopped_ms = performance.now();
  if (refusal !== undefined) {
    await parts.owed.owe(parts.profile);
    throw new CommandRefused(
      `the camera may still be moving: it rejected the stop (${refusal}); Stop is sent again when it answers`,
    );
  }
  await parts.owed.confirm(parts.profile);
  const moving = await settled(parts, still_within_ms, parts.signal);
  if (moving === true)
    throw new CommandRefused('the camera accepted the stop and reports that it still moves');
  return { stopped: moving === false ? 'seen' : 'accepted', stopped_ms };
}

/** Looks the token up first, each time: some cameras answer OK to a preset that they do not have. */
async function goTo(parts: PtzParts, token: string, context: CommandContext) {
  const signal = AbortSignal.any([context.signal, parts.signal]);
  refuseAborted(signal);
  const presets = await readPresets(parts);
  const preset = presets.find((each) => each.token === token);
  if (!preset) {
    const named = presets.find(({ name }) => name === token);
    const hint = named
      ? `; "${token}" is the name of the preset "${named.token}"`
      : `; it has ${
          presets
            .map((each) => each.token)
            .slice(0, 20)
            .join(', ') || 'none'
        }`;
    throw new CommandRefused(notSent(`the camera has no preset "${token}"${hint}`));
  }
  refuseAborted(signal);
  const inner = `${profileToken(parts.profile)}<PresetToken>${escapeXml(token)}</PresetToken>`;
  const outcome = await parts.soap.call({ ...operation('ptz', 'GotoPreset', inner), url: parts.url });
  if (outcome.kind === 'fault') throw new CommandRefused(`${describe(outcome)}; no movement began`);
  if (outcome.kind === 'failure') {
    throw new CommandRefused(`${describe(outcome)}; whether it moves is unknown`);
  }
  const left_ms = Math.min(preset_within_ms, Math.max(0, context.remaining_ms() - move_deadline_ms));
  const moving = await settled(parts, left_ms, signal);
  if (signal.aborted) {
    await stopForSure(parts);
    throw new CommandRefused('cancelled; the camera was stopped');
  }
  if (moving === true)
    throw new CommandRefused('the camera did not reach the preset in time; it still moves');
  return { preset_token: token, name: preset.name, reached: moving === false ? 'seen' : 'accepted' };
}

async function readPresets({ soap, url, profile }: PtzParts) {
  const outcome = await soap.call({ ...operation('ptz', 'GetPresets', profileToken(profile)), url });
  if (outcome.kind !== 'reply') {
    throw new CommandRefused(notSent(`cannot read the presets: ${describe(outcome)}`));
  }
  return all(find(outcome.body, 'getPresetsResponse'), 'preset')
    .slice(0, presets_max)
    .map((preset) => ({ token: attribute(preset, 'token') ?? '', name: textAt(preset, 'name') ?? null }));
}

function refuseAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new CommandRefused(notSent('cancelled'));
}
