/** The drivers section: loads the drivers that are named, and only those, and lets each of them check its own options. */
import { ZodError } from 'zod';
import type { ConfiguredRun, Driver } from '../../toolkit/driver/driver.ts';
import { messageOf } from '../../platform/errors.ts';
import { addIssues, refuseUnknown } from './faults.ts';
import { issuesBehind } from './sound-part.ts';
import type { FaultList } from './source.ts';
import { texts } from './texts.ts';

/** The built-in drivers, by name. */
export type DriverList = readonly { readonly name: string; readonly load: () => Promise<Driver> }[];

export interface DriverInstance {
  /** Unique among the instances. */
  readonly name: string;
  readonly driver: Driver;
  /** As its schema read them: two instances with the same need no restart. */
  readonly options: unknown;
  /** As the file has them. */
  readonly raw: unknown;
  readonly run: ConfiguredRun;
}

/**
 * Takes the section unread, so that the options of a driver are checked also when another section has a fault.
 * Faults that the schema of the file reports are not repeated here.
 */
export async function configureDrivers(
  section: unknown,
  list: DriverList,
  faults: FaultList,
): Promise<readonly DriverInstance[]> {
  const instances: DriverInstance[] = [];
  const names = new Map<string, number>();
  for (const [index, entry] of (Array.isArray(section) ? section : []).entries()) {
    const named = readNames(entry);
    if (!named) continue;
    const earlier = names.get(named.name);
    if (earlier !== undefined) {
      faults.add(['drivers', index], texts.same_name(named.name, earlier));
    }
    names.set(named.name, index);
    const driver = await loadDriver(named.driver, index, list, faults);
    const run = driver && configure(driver, named.options, index, faults);
    if (driver && run)
      instances.push({
        name: named.name,
        driver,
        options: driver.options.parse(named.options),
        raw: named.options,
        run,
      });
  }
  return instances;
}

/** What the options of the drivers leave open to others: each with the name of its driver and, behind a semicolon, the remedy. */
export function cautionsOf(
  instances: readonly DriverInstance[],
): readonly { readonly name: string; readonly sentence: string }[] {
  return instances.flatMap(({ name, driver, raw }) =>
    driver.cautions(raw).map((sentence) => ({ name, sentence })),
  );
}

/** An entry as far as it can be checked further; undefined when the schema of the file has a fault to report. */
function readNames(entry: unknown) {
  if (!isRecord(entry)) return undefined;
  const { driver, name = driver, options = {} } = entry;
  return typeof driver === 'string' && typeof name === 'string' && isRecord(options)
    ? { driver, name, options }
    : undefined;
}

async function loadDriver(
  name: string,
  index: number,
  list: DriverList,
  faults: FaultList,
): Promise<Driver | undefined> {
  const known = list.map((driver) => driver.name);
  const found = list.find((driver) => driver.name === name);
  const path = ['drivers', index, 'driver'];
  if (!found) {
    const sentence = (remedy: string): string => texts.no_driver(name, remedy);
    refuseUnknown(name, { at: path, known, sentence, otherwise: texts.the_drivers_are(known) }, faults);
    return undefined;
  }
  try {
    return await found.load();
  } catch (error) {
    faults.add(path, texts.driver_not_loaded(name, messageOf(error)));
    return undefined;
  }
}

function configure(
  driver: Driver,
  options: unknown,
  index: number,
  faults: FaultList,
): ConfiguredRun | undefined {
  try {
    return driver.configure(options);
  } catch (error) {
    if (!(error instanceof ZodError)) throw error;
    const at = ['drivers', index, 'options'];
    const issues = [...error.issues, ...issuesBehind(driver.options, options, error.issues)];
    addIssues(faults, { schema: driver.options, value: options, at }, issues);
    return undefined;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
