/** Finds the schema that checks a part of a value, so that a fault can name what would be right there. */
import { z } from 'zod';
import type { KeyPath } from './source.ts';

/** A schema and the value that it checks: the value selects one of several shapes. */
export interface Checking {
  readonly schema: z.core.$ZodType;
  readonly value: unknown;
}

/** The schema of what stands at `path`, as far as it is made of objects, lists, records and unions distinguished by a key. */
export function schemaAt(checking: Checking, path: KeyPath): z.core.$ZodType | undefined {
  let schema: z.core.$ZodType | undefined = checking.schema;
  let value = checking.value;
  for (const step of path) {
    schema = schema && stepInto(shapeOf({ schema, value }), String(step));
    value = valueAt(value, [step]);
  }
  return schema;
}

export function valueAt(value: unknown, path: KeyPath): unknown {
  return path.reduce<unknown>(
    (inner, step) => (typeof inner === 'object' && inner !== null ? Reflect.get(inner, step) : undefined),
    value,
  );
}

/** Keys that the value may have. */
export function keysOf(checking: Checking): readonly string[] {
  const inner = shapeOf(checking);
  return inner instanceof z.ZodObject ? Object.keys(inner.shape) : [];
}

function stepInto(schema: z.core.$ZodType, step: string): z.core.$ZodType | undefined {
  if (schema instanceof z.ZodObject) {
    const shape: Readonly<Record<string, z.core.$ZodType>> = schema.shape;
    return shape[step];
  }
  if (schema instanceof z.ZodArray) return schema.element;
  if (schema instanceof z.ZodRecord) return schema.valueType;
  return undefined;
}

/** Without what only adds a default, and the one shape that the value chose. */
function shapeOf({ schema, value }: Checking): z.core.$ZodType {
  if (
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable
  ) {
    return shapeOf({ schema: schema.unwrap(), value });
  }
  if (schema instanceof z.ZodPipe) return shapeOf({ schema: schema.in, value });
  if (schema instanceof z.ZodDiscriminatedUnion) return chosenOf(schema, value) ?? schema;
  if (schema instanceof z.ZodUnion)
    return schema.options.find((option) => option instanceof z.ZodObject) ?? schema;
  return schema;
}

function chosenOf(union: z.ZodDiscriminatedUnion, value: unknown): z.core.$ZodType | undefined {
  const key = union.def.discriminator;
  return union.options.find((option) => {
    const word = option instanceof z.ZodObject ? stepInto(option, key) : undefined;
    return word && z.safeParse(word, valueAt(value, [key])).success;
  });
}
