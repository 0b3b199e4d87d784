/** Suggestions of a driver for the configuration, used by `kit-connector setup` only. */
import type { JsonObject } from '../../contract/json.ts';

export interface Suggestion {
  /** One line for the technician: what was found, and where. */
  readonly what: string;
  readonly options: JsonObject;
  /** False: it is written as a comment, because a password or a decision of the technician is missing. */
  readonly complete: boolean;
}

/** Searches until `signal` aborts or all devices are known. Changes nothing on the devices. A rejection means nothing was found. */
export type Suggest = (signal: AbortSignal) => Promise<readonly Suggestion[]>;
