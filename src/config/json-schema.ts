/** The configuration file as JSON Schema, so that editors complete and check it while it is written. */
import { z } from 'zod';
import type { Driver } from '../driver/driver.ts';
import { configFile } from './schema.ts';

/** JSON Schema (draft-07) of the configuration file, with the options of each of `drivers`. */
export function configJsonSchema(drivers: readonly Driver[]): object {
  const schema = z.toJSONSchema(configFile, { target: 'draft-7', io: 'input' });
  const entries = z.toJSONSchema(configFile.shape.drivers.unwrap(), { target: 'draft-7', io: 'input' });
  const { $schema: _, ...list } = entries;
  const items = {
    ...z.toJSONSchema(configFile.shape.drivers.unwrap().element, { target: 'draft-7', io: 'input' }),
    $schema: undefined,
    allOf: drivers.map((driver) => optionsOf(driver)),
  };
  return {
    ...schema,
    title: 'Configuration of kit-connector',
    properties: { ...schema.properties, drivers: { ...list, items } },
  };
}

/** `options` of the entries whose `driver` is this one. */
function optionsOf(driver: Driver): object {
  const options = z.toJSONSchema(driver.options, { target: 'draft-7', io: 'input' });
  return {
    if: { properties: { driver: { const: driver.name } }, required: ['driver'] },
    // oxlint-disable-next-line unicorn/no-thenable -- `then` is the keyword of JSON Schema
    then: { properties: { options: { ...options, $schema: undefined } } },
  };
}
