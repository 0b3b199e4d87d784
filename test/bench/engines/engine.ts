/** What can be measured: the connector, and what stands beside it for comparison. */
import type { JsonObject } from '../../../src/contract/json.ts';

export interface Engine {
  /** Hands over one message; `sync` ones must outlive a power cut, where the engine knows the difference. */
  send(durability: 'lazy' | 'sync', source: number, data: JsonObject): void;
  /** Messages that the broker has acknowledged so far. */
  readonly acknowledged: number;
  /** Resolves when the engine notices that its connection is gone. */
  readonly lost: Promise<void>;
  close(): Promise<void>;
}

/** Which engine, and how it is set up. */
export type EngineChoice =
  | {
      readonly kind: 'connector';
      readonly file: string;
      readonly batch_rows?: number;
      readonly packet_ms?: number;
      readonly backlog_kbps?: number;
      /** There is no broker: opening does not wait for a connection. */
      readonly offline?: true;
    }
  /** MQTT.js alone, everything in memory. */
  | { readonly kind: 'mqttjs'; readonly protocol: 4 | 5; readonly keepalive_s: number }
  /** A queue in SQLite on the main thread, first in, first out; `commit_ms` 0: a transaction for each message. */
  | { readonly kind: 'fifo'; readonly file: string; readonly commit_ms: number };

/** Messages on their way to the broker, the same for all. */
export const window_messages = 64;
