/** The sentences of `result.error`: what an operator reads when a task was not carried out. */
import { ZodError } from 'zod';
import { messageOf } from '../errors.ts';
import { faults_named_max, sentence_chars_max } from './limits.ts';

/** Why a value breaks its schema, each fault with its key: `payload.speed: Too big: expected number to be <=1`. */
export function faultSentence(error: ZodError, root: string): string {
  const named = error.issues.slice(0, faults_named_max).map(({ path, message }) => {
    const key = [...(root ? [root] : []), ...path.map(String)].join('.');
    return key ? `${key}: ${message}` : message;
  });
  const more = error.issues.length - named.length;
  return bounded([...named, ...(more > 0 ? [`and ${more} more`] : [])].join('; '));
}

/** What a handler threw, as a sentence. A schema that the device's answer broke is no fault of the payload. */
export function thrownSentence(thrown: unknown): string {
  if (thrown instanceof ZodError)
    return bounded(`the device's answer is not understood: ${faultSentence(thrown, '')}`);
  return bounded(messageOf(thrown) || 'the command failed and gave no reason');
}

export function cannotRecord(why: unknown): string {
  return bounded(`the kit cannot record tasks now: ${messageOf(why)}; nothing was done`);
}

export function bounded(sentence: string): string {
  return sentence.length > sentence_chars_max ? `${sentence.slice(0, sentence_chars_max - 1)}…` : sentence;
}
