/** Whether a dispatch that has just arrived may wait for its turn, and until when. Nothing is changed here. */
import type { TaskDispatch } from '../../contract/tasks.ts';
import { type Command, command_timeout_default_ms } from '../../toolkit/driver/command.ts';
import { notSent } from '../../platform/errors.ts';
import type { Stamp } from '../../platform/clock.ts';
import { readPayload, type Runnable } from './task.ts';
import { type Delivery, type Due, type Judged, judgeTime } from './timing.ts';
import { texts } from './texts.ts';

/** Knows the assets: the live command, or a sentence for the operator (unknown, not offered, disabled). */
export type FindCommand = (
  asset_id: string,
  command_name: string,
) =>
  | { readonly asset: { readonly name: string; readonly online: boolean }; readonly command: Command }
  | {
      readonly refusal: string;
      /** The asset is known, and its driver has not reached it since the connector was started a moment ago. */
      readonly isAwaited?: boolean;
    };

export interface Judge {
  readonly findCommand: FindCommand;
  readonly stamp: Stamp;
  readonly delivery: Delivery;
  /** Why there is no room for one more task of the asset. */
  readonly full: (asset_id: string, is_safety: boolean) => string | undefined;
}

/** Until when the task may run, and the payload as its command has read it. */
export interface Admitted {
  readonly due: Due;
  /** Undefined: the asset is awaited, and its command is not known yet. */
  readonly reading: Runnable | undefined;
}

/** What is to be carried out and until when, or the sentence with which the task fails. */
export function judge(dispatch: TaskDispatch, parts: Judge): Judged<Admitted> {
  const { findCommand, stamp, delivery, full } = parts;
  if (delivery.retained) {
    return {
      refusal: notSent(texts.expired_retained),
    };
  }
  const found = findCommand(dispatch.asset_id, dispatch.command_name);
  if ('refusal' in found) return found.isAwaited === true ? awaited(dispatch, parts) : found;
  const { risk_level } = found.command;
  const reading = readPayload(found.command, dispatch.payload);
  // A payload that cannot be read pre-empts nothing.
  const is_safety = 'invocation' in reading && reading.invocation.is_safety;
  const own_ms = 'invocation' in reading ? reading.invocation.timeout_ms : undefined;
  const timeout_ms = own_ms ?? found.command.timeout_ms;
  const due = judgeTime(dispatch, { risk_level, timeout_ms, is_safety }, stamp, delivery);
  if ('refusal' in due) return due;
  if (!found.asset.online) return { refusal: offline(found.asset) };
  if ('refusal' in reading) return { refusal: reading.refusal };
  const refusal = full(dispatch.asset_id, is_safety);
  return refusal === undefined ? { due, reading } : { refusal };
}

/** Lets a task wait for its asset until its deadline. Of its command nothing is known, so the strictest rules apply. */
function awaited(dispatch: TaskDispatch, { stamp, delivery, full }: Judge): Judged<Admitted> {
  const strictest = { risk_level: 'high', timeout_ms: command_timeout_default_ms, is_safety: false } as const;
  const due = judgeTime(dispatch, strictest, stamp, delivery);
  if ('refusal' in due) return due;
  const refusal = full(dispatch.asset_id, false);
  return refusal === undefined ? { due, reading: undefined } : { refusal };
}

/** The sentence for a task whose asset cannot be reached now. */
export function offline({ name }: { readonly name: string }): string {
  return notSent(texts.asset_offline(name));
}
