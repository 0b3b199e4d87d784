/** The payload of a task: validated once, when its command is first found, and shared by all that follows. */
import { ZodError } from 'zod';
import type { Command, Invocation } from '../driver/command.ts';
import { faultSentence, thrownSentence } from './sentences.ts';
import type { Task } from './task.ts';

/** A payload that its command accepts. */
export interface Runnable {
  readonly command: Command;
  readonly invocation: Invocation;
}

/** A payload as a command has read it; `refusal`: the sentence with which its task fails. */
export type Reading = Runnable | { readonly command: Command; readonly refusal: string };

export function readPayload(command: Command, payload: unknown): Reading {
  try {
    return { command, invocation: command.read(payload) };
  } catch (error) {
    const refusal = error instanceof ZodError ? faultSentence(error, 'payload') : thrownSentence(error);
    return { command, refusal };
  }
}

/**
 * The reading of the task by the live command. A driver may have announced another command of that name since: then its
 * schema decides and its handler is called, never one of an earlier announcement.
 */
export function readingBy(command: Command, task: Task): Reading {
  if (task.reading?.command !== command) task.reading = readPayload(command, task.payload);
  return task.reading;
}
