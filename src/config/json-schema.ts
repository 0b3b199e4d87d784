/** The configuration file as JSON Schema, so that editors complete and check it while it is written. */
import { z } from 'zod';
import type { Driver } from '../driver/driver.ts';
import { configFile } from './schema.ts';

/** JSON Schema (draft-07) of the configuration file, with the options of each of `drivers`. */
export function configJsonSchema(drivers: readonly Driver[]): object {
  const { $schema, properties, ...schema } = fileJsonSchema();
  const entry = z.toJSONSchema(configFile.shape.drivers.unwrap().element, { target: 'draft-7', io: 'input' });
  const items = {
    ...entry,
    $schema: undefined,
    properties: {
      ...entry.properties,
      driver: { ...draft(entry.properties?.['driver']), enum: drivers.map(({ name }) => name) },
    },
    allOf: drivers.map((driver) => optionsOf(driver)),
  };
  return {
    $schema,
    title: 'Configuration of kit-connector',
    ...schema,
    properties: { ...properties, drivers: { ...draft(properties?.['drivers']), items } },
  };
}

/** JSON Schema of the file; the options of drivers are any object. */
export function fileJsonSchema(): z.core.JSONSchema.BaseSchema {
  return z.toJSONSchema(configFile, { target: 'draft-7', io: 'input' });
}

/** JSON Schema of the options of a driver. */
export function optionsJsonSchema(driver: Driver): z.core.JSONSchema.BaseSchema {
  return z.toJSONSchema(driver.options, { target: 'draft-7', io: 'input' });
}

/** JSON Schema allows `true` and `false` for schemas; zod writes them for nothing in this file. */
function draft(schema: unknown): object {
  return typeof schema === 'object' && schema !== null ? schema : {};
}

/** `options` of the entries whose `driver` is this one. */
function optionsOf(driver: Driver): object {
  const options = optionsJsonSchema(driver);
  return {
    if: { properties: { driver: { const: driver.name } }, required: ['driver'] },
    // oxlint-disable-next-line unicorn/no-thenable -- `then` is the keyword of JSON Schema
    then: { properties: { options: { ...options, $schema: undefined } } },
  };
}
