/** Whether a dispatch that has just arrived may wait for its turn, and until when. Nothing is changed here. */
import { ZodError } from 'zod';
import type { TaskDispatch } from '../contract/tasks.ts';
import type { Command } from '../driver/command.ts';
import type { Stamp } from '../platform/clock.ts';
import { faultSentence, thrownSentence } from './sentences.ts';
import { type Delivery, type Due, type Judged, judgeTime } from './timing.ts';

/** Knows the assets: the live command, or a sentence for the operator (unknown, not offered, disabled). */
export type FindCommand = (
  asset_id: string,
  command_name: string,
) =>
  | { readonly asset: { readonly name: string; readonly online: boolean }; readonly command: Command }
  | { readonly refusal: string };

/** The sentence for a task that cannot be carried out now. */
export function obstacle(
  found: Exclude<ReturnType<FindCommand>, { refusal: string }>,
  payload: unknown,
): string | undefined {
  if (!found.asset.online) return `${found.asset.name} is offline; nothing was done`;
  try {
    found.command.check(payload);
    return undefined;
  } catch (error) {
    return error instanceof ZodError ? faultSentence(error, 'payload') : thrownSentence(error);
  }
}

export interface Judge {
  readonly findCommand: FindCommand;
  readonly stamp: Stamp;
  readonly delivery: Delivery;
  /** Why there is no room for one more task of the asset. */
  readonly full: (asset_id: string, is_safety: boolean) => string | undefined;
}

/** Until when the task may run, or the sentence with which it fails. */
export function judge(dispatch: TaskDispatch, { findCommand, stamp, delivery, full }: Judge): Judged<Due> {
  if (delivery.retained) {
    return {
      refusal:
        'expired: a retained dispatch is refused, since it comes again at each connect; nothing was done',
    };
  }
  const found = findCommand(dispatch.asset_id, dispatch.command_name);
  if ('refusal' in found) return found;
  const { risk_level, timeout_ms } = found.command;
  const is_safety = found.command.isSafety(dispatch.payload);
  const due = judgeTime(dispatch, { risk_level, timeout_ms, is_safety }, stamp, delivery);
  if ('refusal' in due) return due;
  const refusal = obstacle(found, dispatch.payload) ?? full(dispatch.asset_id, is_safety);
  return refusal ? { refusal } : due;
}
