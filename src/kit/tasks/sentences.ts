/** The sentences of `result.error`: what an operator reads when a task was not carried out. */
import { ZodError } from 'zod';
import { datumOf } from '../../contract/first-fault.ts';
import type { JsonObject } from '../../contract/json.ts';
import { cut } from '../../contract/limits.ts';
import { messageOf, notSent } from '../../platform/errors.ts';
import { cleanText } from '../../platform/foreign-text.ts';
import { faults_named_max, sentence_chars_max } from './limits.ts';
import { isTerminal, type TaskState, type TerminalState } from './machine.ts';
import { texts } from './texts.ts';

/** Why a value breaks its schema, each fault with its key: `payload.speed: Too big: expected number to be <=1`. */
export function faultSentence(error: ZodError, root: string, schema: JsonObject = {}): string {
  const named = error.issues.slice(0, faults_named_max).map((issue) => {
    const key = [...(root ? [root] : []), ...issue.path.map(String)].join('.');
    const fault = `${issue.message}${datumOf(issue, schema)}`;
    return key ? `${key}: ${fault}` : fault;
  });
  const more = error.issues.length - named.length;
  return bounded([...named, ...(more > 0 ? [`and ${more} more`] : [])].join('; '));
}

/** What a handler threw, as a sentence. A schema that the device's answer broke is no fault of the payload. */
export function thrownSentence(thrown: unknown): string {
  if (thrown instanceof ZodError) return bounded(texts.device_invalid(faultSentence(thrown, '')));
  return bounded(messageOf(thrown) || texts.no_reason);
}

export function cannotRecord(why: unknown): string {
  return bounded(notSent(texts.not_recorded(messageOf(why))));
}

/**
 * Progress note for a task result that cannot be recorded. It is not final: the next run may start the task from what is on disk.
 */
export function unrecordedNote(state: TaskState, reason: string): string {
  const error = isTerminal(state) ? errorOf(state) : '';
  const how = error.replace(notSent(''), '') || state.status;
  const why = how.includes(reason) ? '' : reason;
  return bounded(texts.not_final(why, how));
}

/** The error of a failed task; empty for a completed task. */
export function errorOf({ status, result }: TerminalState): string {
  const error = status === 'failed' ? result['error'] : undefined;
  return typeof error === 'string' ? error : '';
}

/** One line for the operator, whatever a device has written. */
export function bounded(sentence: string): string {
  const line = cleanText(sentence);
  return line.length > sentence_chars_max ? `${cut(line, sentence_chars_max - 1)}…` : line;
}
