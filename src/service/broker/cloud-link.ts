/** The way between the service and its kits: MQTT (`broker-link.ts`) or AMQP (`../amqp/amqp-link.ts`). */
import type { PartnerChange } from '../../contract/partners.ts';
import type { CloudAck } from '../../contract/tasks.ts';
import type { Dispatcher } from '../service.ts';

export interface CloudLink extends Dispatcher {
  readonly isUp: boolean;
  /** Whether the broker reports which message it refused. */
  readonly reports_refusals: boolean;
  /** Runs until `signal` aborts and the connection is closed. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  /** Sends what this side has of a partner asset. */
  readonly sendPartner: (kit_id: string, asset_id: string, change: PartnerChange) => Promise<void>;
  /** Rejects with `MessageRefused`, also when it is larger than the broker accepts. */
  readonly acknowledge: (kit_id: string, ack: CloudAck, retain: boolean) => Promise<void>;
  /** Asks the kit to publish everything retained, and its telemetry, again. */
  readonly requestSync: (kit_id: string) => Promise<void>;
}
