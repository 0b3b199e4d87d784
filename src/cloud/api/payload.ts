/**
 * Checks the payload of a command against the schema that the kit has published. The schema comes from outside, so only a
 * subset that cannot be slow is read: objects of numbers, strings, booleans, constants, choices and lists of these, with bounds,
 * and of objects whose content the kit checks. Annotations (`x-...`) do not matter here.
 */
import { z } from 'zod';
import { datumOf } from '../../contract/first-fault.ts';
import { type Json, type JsonObject, jsonObject } from '../../contract/json.ts';
import { escapePointer, fieldFaults, type FieldFault } from './problem.ts';
import { texts } from '../texts.ts';

const properties_max = 32;
const choices_max = 256;
const text_max = 4_096;
const items_max = 256;

const common = {
  title: z.string().optional(),
  description: z.string().optional(),
  default: z.unknown().optional(),
  examples: z.array(z.unknown()).optional(),
};
const bounds = {
  minimum: z.number().optional(),
  maximum: z.number().optional(),
  exclusiveMinimum: z.number().optional(),
  exclusiveMaximum: z.number().optional(),
  multipleOf: z.number().positive().optional(),
};
const constants = <S extends z.ZodType>(value: S) => ({
  enum: z.array(value).min(1).max(choices_max).optional(),
  const: value.optional(),
});
const scalar = z.union([
  z.strictObject({
    ...common,
    type: z.enum(['number', 'integer']),
    ...bounds,
    ...constants(z.number()),
  }),
  z.strictObject({ ...common, type: z.literal('boolean'), ...constants(z.boolean()) }),
  z.strictObject({
    ...common,
    type: z.literal('string'),
    ...constants(z.string()),
    minLength: z.int().nonnegative().optional(),
    maxLength: z.int().nonnegative().max(text_max).optional(),
  }),
]);
const choices = z.array(scalar).min(1).max(choices_max);
const list = z.strictObject({
  ...common,
  type: z.literal('array'),
  items: scalar,
  minItems: z.int().nonnegative().optional(),
  maxItems: z.int().nonnegative().max(items_max),
});
/** An object with any content, as Zod writes one. */
const anyObject = z.strictObject({
  ...common,
  type: z.literal('object'),
  propertyNames: z.strictObject({ type: z.literal('string') }).optional(),
  additionalProperties: z.union([z.literal(true), z.strictObject({})]).optional(),
});
const property = z.union([
  scalar,
  anyObject,
  list,
  z.strictObject({ ...common, anyOf: choices }),
  z.strictObject({ ...common, oneOf: choices }),
]);

/** The supported schemas. `pattern` is not supported: a foreign regular expression can run without end. */
const readable = z.strictObject({
  ...common,
  type: z.literal('object'),
  properties: z
    .record(z.string(), property)
    .refine((all) => Object.keys(all).length <= properties_max)
    .default({}),
  required: z.array(z.string()).default([]),
  additionalProperties: z.boolean().optional(),
});

/** Returns the faults of the payload. An unsupported schema accepts every object: the kit checks again. */
export function payloadFaults(input_schema: JsonObject, payload: JsonObject): readonly FieldFault[] {
  if (Object.keys(input_schema).length === 0) {
    const [extra] = Object.keys(payload);
    return extra === undefined
      ? []
      : [{ pointer: `#/payload/${escapePointer(extra)}`, detail: texts.no_payload }];
  }
  const schema = withoutAnnotations(input_schema);
  if (!readable.safeParse(schema).success) return [];
  const read = z.fromJSONSchema({ ...schema }).safeParse(payload);
  if (read.success) return [];
  const { issues } = read.error;
  return fieldFaults(read.error).map(({ pointer, detail }, at) => ({
    pointer: `#/payload${pointer.slice(1)}`,
    detail: `${detail}${issues[at] ? datumOf(issues[at], input_schema) : ''}`,
  }));
}

/** Returns whether the schema is supported; otherwise only the kit can check the payload. */
export function isReadable(input_schema: JsonObject): boolean {
  return (
    Object.keys(input_schema).length === 0 || readable.safeParse(withoutAnnotations(input_schema)).success
  );
}

/** Leaves out what describes the command and its fields for consoles, such as `x-kit-unit`: no validation depends on it. */
function withoutAnnotations({ properties, ...rest }: JsonObject): JsonObject {
  const { data: fields } = jsonObject.safeParse(properties);
  if (!fields) return properties === undefined ? plain(rest) : { ...plain(rest), properties };
  const stripped: Record<string, Json | undefined> = { ...fields };
  for (const [name, field] of Object.entries(fields)) {
    const { data } = jsonObject.safeParse(field);
    if (data) stripped[name] = plain(data);
  }
  return { ...plain(rest), properties: stripped };
}

function plain(schema: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(schema).filter(([name]) => !name.startsWith('x-')));
}
