/** Reads a dispatch as it comes from a topic, from the gateway itself, or from the journal. */
import { message_limits, readJson } from '../../contract/bounded-json.ts';
import { z } from 'zod';
import type { JsonObject } from '../../contract/json.ts';
import { type TaskDispatch, taskDispatch, type TaskOrigin, taskOrigin } from '../../contract/tasks.ts';
import { messageOf } from '../../platform/errors.ts';
import { dispatch_chars_max } from './limits.ts';
import { faultSentence } from './sentences.ts';
import { texts } from './texts.ts';

/** `refusal`: why it is not carried out; undefined when it may be. `text`: the beginning of what cannot be read. */
export type ReadDispatch =
  | { readonly dispatch: TaskDispatch; readonly refusal: undefined }
  | { readonly dispatch: TaskDispatch; readonly refusal: string }
  | { readonly dispatch: undefined; readonly refusal: string; readonly text: string };

/** `raw`: the payload of the message (bytes or text), or a value that was parsed already. `task_id`: in lower case. */
export function readDispatch(raw: unknown, task_id: string): ReadDispatch {
  try {
    const text = textOf(raw);
    if (text.length > dispatch_chars_max) {
      return unreadable(texts.dispatch_too_long(text.length, dispatch_chars_max), text);
    }
    const parsed = taskDispatch.safeParse(readJson(text, message_limits));
    if (!parsed.success)
      return unreadable(texts.dispatch_not_understood(faultSentence(parsed.error, '')), text);
    const dispatch = withLowerCaseIds(parsed.data);
    if (dispatch.task_id.toLowerCase() === task_id) return { dispatch, refusal: undefined };
    return { dispatch, refusal: texts.other_task_id(dispatch.task_id, task_id) };
  } catch (error) {
    return unreadable(texts.dispatch_not_json(messageOf(error)), '');
  }
}

/** What the journal keeps of a dispatch, as JSON text. A refused dispatch is kept without its payload. */
export function journalText(
  read: ReadDispatch,
  {
    origin,
    refused,
    repeatable = false,
  }: { readonly origin: TaskOrigin; readonly refused: boolean; readonly repeatable?: boolean },
): string {
  if (!read.dispatch) return JSON.stringify({ unreadable: read.text, origin });
  const { task_id, asset_id, command_name, created_at, deadline } = read.dispatch;
  const text = JSON.stringify({ ...read.dispatch, origin, ...(repeatable ? { repeatable } : {}) });
  if (!refused || text.length <= refused_chars_max) return text;
  const facts = { task_id, asset_id, command_name, created_at, deadline, payload: {}, is_cut: true };
  return JSON.stringify({ ...facts, origin });
}
/** 10,000 tasks are kept, and anybody who may dispatch can have them refused. */
const refused_chars_max = 4_096;

/** What the journal has of a task. */
export interface JournaledDispatch {
  /** Undefined when it cannot be read, or not any more. */
  readonly dispatch: TaskDispatch | undefined;
  /** Undefined when an earlier version kept it. */
  readonly origin: TaskOrigin | undefined;
  /** Whether its command may be run again after a restart. */
  readonly repeatable: boolean;
}

export function readJournaled(text: string): JournaledDispatch {
  try {
    const kept: unknown = JSON.parse(text);
    const { data } = taskDispatch.safeParse(kept);
    return {
      dispatch: data && withLowerCaseIds(data),
      origin: z.object({ origin: taskOrigin }).safeParse(kept).data?.origin,
      repeatable: z.object({ repeatable: z.literal(true) }).safeParse(kept).success,
    };
  } catch {
    return { dispatch: undefined, origin: undefined, repeatable: false };
  }
}

/** Fields of a report about the dispatch: the same from the journal as at first. Empty where the journal does not have it. */
export function reportedOf(text: string): { readonly payload?: JsonObject; readonly created_at?: string } {
  const { dispatch } = readJournaled(text);
  if (!dispatch || dispatch['is_cut'] === true) return {};
  return { payload: dispatch.payload, created_at: dispatch.created_at };
}

/** A report that is sent again from the journal must be the very report that was sent. */
function withLowerCaseIds(dispatch: TaskDispatch): TaskDispatch {
  return { ...dispatch, asset_id: dispatch.asset_id.toLowerCase() };
}

function textOf(raw: unknown): string {
  if (typeof raw === 'string') return raw;
  if (raw instanceof Uint8Array) return new TextDecoder('utf-8', { fatal: true }).decode(raw);
  return JSON.stringify(raw) ?? '';
}

/** Of a text that is not carried out, the beginning is enough to look at. */
function unreadable(refusal: string, text: string): ReadDispatch {
  return { dispatch: undefined, refusal, text: text.slice(0, unreadable_chars_max) };
}
const unreadable_chars_max = 1_000;
