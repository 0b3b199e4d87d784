/** Reads a dispatch as it comes from a topic, from the gateway itself, or from the journal. */
import { type TaskDispatch, taskDispatch } from '../contract/tasks.ts';
import { messageOf } from '../errors.ts';
import { dispatch_chars_max } from './limits.ts';
import { faultSentence } from './sentences.ts';

/** `text`: JSON for the journal, bounded. `refusal`: why it is not carried out; undefined when it may be. */
export type ReadDispatch =
  | { readonly dispatch: TaskDispatch; readonly refusal: undefined; readonly text: string }
  | { readonly dispatch: TaskDispatch | undefined; readonly refusal: string; readonly text: string };

/** `raw`: the payload of the message (bytes or text), or a value that was parsed already. `task_id`: in lower case. */
export function readDispatch(raw: unknown, task_id: string): ReadDispatch {
  try {
    const text = textOf(raw);
    if (text.length > dispatch_chars_max) {
      return unreadable(
        `the dispatch has ${text.length} characters; at most ${dispatch_chars_max} are taken`,
        text,
      );
    }
    const parsed = taskDispatch.safeParse(JSON.parse(text));
    if (!parsed.success)
      return unreadable(`the dispatch is not understood: ${faultSentence(parsed.error, '')}`, text);
    const dispatch = { ...parsed.data, asset_id: parsed.data.asset_id.toLowerCase() };
    if (dispatch.task_id.toLowerCase() === task_id) return { dispatch, refusal: undefined, text };
    return {
      dispatch,
      refusal: `task_id: ${dispatch.task_id} in the dispatch, ${task_id} in the topic`,
      text,
    };
  } catch (error) {
    return unreadable(`the dispatch is not JSON: ${messageOf(error)}`, '');
  }
}

/** A dispatch from the journal; undefined when it cannot be read any more. */
export function readJournaled(text: string): TaskDispatch | undefined {
  try {
    return taskDispatch.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

function textOf(raw: unknown): string {
  if (typeof raw === 'string') return raw;
  if (raw instanceof Uint8Array) return new TextDecoder('utf-8', { fatal: true }).decode(raw);
  return JSON.stringify(raw) ?? '';
}

/** Of a text that is not carried out, the beginning is enough to look at. */
function unreadable(refusal: string, text: string): ReadDispatch {
  return {
    dispatch: undefined,
    refusal,
    text: JSON.stringify({ unreadable: text.slice(0, unreadable_chars_max) }),
  };
}
const unreadable_chars_max = 1_000;
