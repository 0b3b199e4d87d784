/** What a driver that looks around suggests for the configuration. Only `kit-connector setup` asks. */
import type { JsonObject } from '../contract/json.ts';

export interface Suggestion {
  /** One line for the technician: what was found, and where. */
  readonly what: string;
  readonly options: JsonObject;
  /** False: it is written as a comment, because a password or the technician's word is missing. */
  readonly complete: boolean;
}

/** Looks until `signal` aborts or all is known. Changes nothing on the devices. May reject: then nothing was found. */
export type Suggest = (signal: AbortSignal) => Promise<readonly Suggestion[]>;
