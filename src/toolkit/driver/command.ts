/** Definition of a command: its published input schema and its handler, joined so that no handler receives an unchecked payload. */
import { z } from 'zod';
import type { RiskLevel } from '../../contract/assets.ts';
import { type JsonObject, jsonObject } from '../../contract/json.ts';

/** Services of the task runner for a running command. */
export interface CommandContext {
  /** Aborts when the task is cancelled, superseded or past its deadline, or when the daemon stops. */
  readonly signal: AbortSignal;
  /** Reports the progress of a long command. */
  readonly progress: (message: string, pct?: number) => void;
  /** Milliseconds left until the deadline. */
  readonly remaining_ms: () => number;
  /**
   * Milliseconds since the task was created in the cloud or on the gateway. Null: unknown, because the kit's
   * clock was not set when it arrived. Absent outside the task runner.
   */
  readonly age_ms?: () => number | null;
  /** True: a restart of the connector interrupted an earlier run of this task. Only commands that are `repeatable` see it. */
  readonly repeated?: boolean;
}

/** A validated payload, ready to run once. */
export interface Invocation {
  /** Whether it may pre-empt a waiting or running task of the asset: stop, disarm, land, return_home. */
  readonly is_safety: boolean;
  /** Deadline after dispatch of this payload, where it needs another one than the command. */
  readonly timeout_ms?: number;
  /** Resolves with `result` once the effect was observed. Throws `CommandRefused` for a refusal. */
  readonly run: (context: CommandContext) => Promise<JsonObject>;
}

/** A command for the hub and the task runner: the input type is erased. */
export interface Command {
  readonly name: string;
  readonly description: string;
  readonly risk_level: RiskLevel;
  readonly requires_approval: boolean;
  /** JSON Schema (draft-07) of the payload; `{}` when there is none. */
  readonly input_schema: JsonObject;
  /** Deadline after dispatch when the dispatch names none. */
  readonly timeout_ms: number;
  /** May be run again when a restart interrupted it. Never true for what moves a machine. */
  readonly repeatable: boolean;
  /** Does not touch the device: only tasks of the same name wait for each other, and no safety command ends them. */
  readonly own_line: boolean;
  /** Validates the payload, without touching a device. Throws `z.ZodError` when it breaks the input schema. */
  readonly read: (payload: unknown) => Invocation;
}

interface CommandSpec<S extends z.ZodObject> {
  readonly name: string;
  readonly description: string;
  readonly risk_level: RiskLevel;
  readonly requires_approval?: boolean;
  readonly timeout_ms?: number;
  /** For inputs that take longer, such as those that wait for an arrival. */
  readonly timeoutOf_ms?: (input: z.output<S>) => number | undefined;
  /** A function where it depends on the input: to land is one of the modes that can be set. */
  readonly safety?: boolean | ((input: z.output<S>) => boolean);
  readonly repeatable?: boolean;
  readonly own_line?: boolean;
  readonly input: S;
  readonly handle: (input: z.output<S>, context: CommandContext) => Promise<JsonObject>;
}

/** Default deadline of a command: 10 s suits what moves a vehicle. */
export const command_timeout_default_ms = 10_000;

export const noInput = z.strictObject({});

export function defineCommand<S extends z.ZodObject>(spec: CommandSpec<S>): Command {
  return {
    name: spec.name,
    description: spec.description,
    risk_level: spec.risk_level,
    requires_approval: spec.requires_approval ?? spec.risk_level === 'high',
    input_schema: inputSchema(spec.input),
    timeout_ms: spec.timeout_ms ?? command_timeout_default_ms,
    repeatable: spec.repeatable ?? false,
    own_line: spec.own_line ?? false,
    read: (payload) => invocationOf(spec, spec.input.parse(payload ?? {})),
  };
}

function invocationOf<S extends z.ZodObject>(
  { safety = false, timeoutOf_ms, handle }: CommandSpec<S>,
  input: z.output<S>,
): Invocation {
  const timeout_ms = timeoutOf_ms?.(input);
  return {
    ...(timeout_ms === undefined ? {} : { timeout_ms }),
    is_safety: typeof safety === 'boolean' ? safety : safety(input),
    run: async (context) => handle(input, context),
  };
}

/** The contract represents "no payload" as `{}`. */
function inputSchema(input: z.ZodObject): JsonObject {
  if (Object.keys(input.shape).length === 0) return {};
  const { $schema: _, ...schema } = z.toJSONSchema(input, { target: 'draft-7', io: 'input' });
  return jsonObject.parse(JSON.parse(JSON.stringify(schema)));
}
