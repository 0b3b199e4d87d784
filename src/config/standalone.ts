/** The configuration file of the service that runs alone: broker, database, and where it listens. */
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { ConfigInvalid } from '../errors.ts';
import { type BrokerOptions, readBroker } from './broker.ts';
import { addIssues } from './faults.ts';
import { configFile, type LogLevel } from './schema.ts';
import { type ServiceConfig, serviceOf, serviceSection } from './service.ts';
import { faultList, parseSource, readSource } from './source.ts';

export const standalone_file_default = '/etc/kit-connector/service.yaml';
/** The user name of the cloud's side in the samples of the brokers' rules. */
const username_default = 'cloud';

const standaloneFile = serviceSection.extend({
  broker: configFile.shape.broker.unwrap().describe('username: "cloud" when left out'),
  client_id: z
    .string()
    .min(1)
    .max(64)
    .default('kit-service')
    .describe('of MQTT; the same at each start, and no other client has it'),
  database: z
    .string()
    .min(1)
    .default('/var/lib/kit-connector/service.db')
    .describe('SQLite file; made when it is missing'),
  log: configFile.shape.log,
});

export interface StandaloneConfig extends ServiceConfig {
  readonly broker: BrokerOptions;
  readonly client_id: string;
  readonly database: string;
  readonly log: { readonly level: LogLevel; readonly drivers: Readonly<Record<string, LogLevel>> };
  /** Sentences on what works and should not stay as it is. */
  readonly warnings: readonly string[];
}

/** Reads the file and the secrets it names. Throws `ConfigInvalid` with every fault that was found. */
export async function readStandalone(
  file: string,
  credentials_dir: string | undefined,
): Promise<StandaloneConfig> {
  const source = parseSource(file, await readSource(file));
  const faults = faultList(source);
  const read = standaloneFile.safeParse(source.value);
  if (!read.success)
    addIssues(faults, { schema: standaloneFile, value: source.value, at: [] }, read.error.issues);
  const warnings: string[] = [];
  const broker =
    read.data &&
    (await readBroker(read.data.broker, username_default, { source, faults, warnings, credentials_dir }));
  const lines = faults.lines();
  if (!read.success || !broker || lines.length > 0) throw new ConfigInvalid(lines);
  const { client_id, database, log } = read.data;
  return {
    ...serviceOf(read.data, undefined),
    broker,
    client_id,
    database: resolve(dirname(file), database),
    log,
    warnings,
  };
}

/** The database that a file names, for the commands that manage keys; faults elsewhere do not matter. */
export async function readDatabase(file: string): Promise<string> {
  const { value } = parseSource(file, await readSource(file));
  const { database } = standaloneFile.pick({ database: true }).strip().parse(value);
  return resolve(dirname(file), database);
}
