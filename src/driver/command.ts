/** What a command is: its published input schema and its handler, joined so that no handler sees an unchecked payload. */
import { z } from 'zod';
import type { RiskLevel } from '../contract/assets.ts';
import { type JsonObject, jsonObject } from '../contract/json.ts';

/** What a running command may ask of the task runner. */
export interface CommandContext {
  /** Aborts when the task is cancelled, superseded or past its deadline, or when the daemon stops. */
  readonly signal: AbortSignal;
  /** Tells how far a long command has come. */
  readonly progress: (message: string, pct?: number) => void;
  /** Milliseconds left until the deadline. */
  readonly remaining_ms: () => number;
  /**
   * Milliseconds since the task was created in the cloud or on the gateway. Null: the kit's clock was not set when it
   * came, so that nobody can tell. Absent outside the task runner.
   */
  readonly age_ms?: () => number | null;
}

/** A command as the hub and the task runner see it: the payload is unread, the input type is erased. */
export interface Command {
  readonly name: string;
  readonly description: string;
  readonly risk_level: RiskLevel;
  readonly requires_approval: boolean;
  /** JSON Schema (draft-07) of the payload; `{}` when there is none. */
  readonly input_schema: JsonObject;
  /** Deadline after dispatch when the dispatch names none. */
  readonly timeout_ms: number;
  /** Whether it may, with this payload, pre-empt a waiting or running task of the asset: stop, disarm, land, return_home. */
  readonly isSafety: (payload: unknown) => boolean;
  /** May be run again when a restart interrupted it. Never true for what moves a machine. */
  readonly repeatable: boolean;
  /** Touches no device. Throws `z.ZodError` for a payload that `invoke` would not take. */
  readonly check: (payload: unknown) => void;
  /** Resolves with `result` once the effect was seen. Throws `z.ZodError` for a bad payload, `CommandRefused` for a refusal. */
  readonly invoke: (payload: unknown, context: CommandContext) => Promise<JsonObject>;
}

interface CommandSpec<S extends z.ZodObject> {
  readonly name: string;
  readonly description: string;
  readonly risk_level: RiskLevel;
  readonly requires_approval?: boolean;
  readonly timeout_ms?: number;
  /** A function where it depends on the input: to land is one of the modes that can be set. */
  readonly safety?: boolean | ((input: z.output<S>) => boolean);
  readonly repeatable?: boolean;
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
    isSafety: (payload) => isSafety(spec, payload),
    repeatable: spec.repeatable ?? false,
    check: (payload) => void spec.input.parse(payload ?? {}),
    invoke: async (payload, context) => spec.handle(spec.input.parse(payload ?? {}), context),
  };
}

/** What is no payload of the command pre-empts nothing. */
function isSafety<S extends z.ZodObject>(
  { input, safety = false }: CommandSpec<S>,
  payload: unknown,
): boolean {
  if (typeof safety === 'boolean') return safety;
  const read = input.safeParse(payload ?? {});
  return read.success && safety(read.data);
}

/** The interface writes "no payload" as `{}`. */
function inputSchema(input: z.ZodObject): JsonObject {
  if (Object.keys(input.shape).length === 0) return {};
  const { $schema: _, ...schema } = z.toJSONSchema(input, { target: 'draft-7', io: 'input' });
  return jsonObject.parse(JSON.parse(JSON.stringify(schema)));
}
