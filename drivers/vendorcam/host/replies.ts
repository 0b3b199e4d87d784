/** Reads the answer to a batch of commands: an array of values and errors, mostly in the order of the commands. */
import { z } from 'zod';
import { answer_limits, readJson } from '../../../src/contract/bounded-json.ts';
import { DeviceUnreachable } from '../../../src/platform/errors.ts';
import { type Fault, faultOf } from './rsp-codes.ts';
import { texts } from '../texts.ts';

export interface Command {
  readonly cmd: string;
  /** 1 requests initial values and ranges too. */
  readonly action?: 0 | 1;
  readonly param?: Readonly<Record<string, unknown>>;
}

export type Outcome = { readonly value: unknown } | { readonly fault: Fault };

const number = z.number().catch(0);
const reply = z.looseObject({
  cmd: z.string().catch(''),
  code: z.number(),
  value: z.unknown().optional(),
  error: z.looseObject({ rspCode: number, detail: z.string().catch('') }).optional(),
});
const replies = z.array(reply);
const settingReply = z.looseObject({ rspCode: z.number() });

/** Throws DeviceUnreachable for anything but a reply of such a device. */
export function readReplies(text: string): readonly (Outcome & { readonly cmd: string })[] {
  const read = replies.safeParse(parsed(text));
  if (!read.success) throw new DeviceUnreachable(texts.no_reply);
  return read.data.map(({ cmd, code, value, error }) => {
    if (code !== 0) return { cmd, fault: faultOf(error?.rspCode ?? code, error?.detail ?? '') };
    const setting = settingReply.safeParse(value).data;
    if (setting && setting.rspCode < 0) return { cmd, fault: faultOf(setting.rspCode, '') };
    return { cmd, value };
  });
}

/** The value read with `schema`; undefined for an error or for a value of another shape. */
export function valueOf<S extends z.ZodType>(
  outcome: Outcome | undefined,
  schema: S,
): z.output<S> | undefined {
  if (!outcome || 'fault' in outcome) return undefined;
  return schema.safeParse(outcome.value).data;
}

export function faultIn(outcome: Outcome | undefined): Fault | undefined {
  return outcome && 'fault' in outcome ? outcome.fault : undefined;
}

function parsed(text: string): unknown {
  try {
    return readJson(text, answer_limits);
  } catch {
    return undefined;
  }
}
