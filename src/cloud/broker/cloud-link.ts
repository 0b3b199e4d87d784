/** The way between the service and its kits, the same over MQTT (`broker-link.ts`) and AMQP (`../amqp/amqp-link.ts`). */
import type { PartnerChange } from '../../contract/partners.ts';
import { type WhepRequest, whep_expiry_s } from '../../contract/whep.ts';
import type { CloudAck } from '../../contract/tasks.ts';
import type { SendFile } from '../files/cloud-files.ts';
import type { Dispatcher } from '../service.ts';
import { texts } from '../texts.ts';
import { cut, name_chars_max } from '../../contract/limits.ts';
import { downTopic } from '../../contract/topics.ts';
import type { TaskOrder } from '../stored/stored.ts';

export interface CloudLink extends Dispatcher {
  readonly isUp: boolean;
  /** Whether the broker reports which message it refused. */
  readonly reports_refusals: boolean;
  /** Runs until `signal` aborts and the connection is closed. */
  readonly run: (signal: AbortSignal) => Promise<void>;
  /** Sends what this side has of a partner asset. */
  readonly sendPartner: (kit_id: string, asset_id: string, change: PartnerChange) => Promise<void>;
  /** Sends what this side wants of a file. */
  readonly sendFile: SendFile;
  /** Rejects with `MessageRefused`, also when it is larger than the broker accepts. */
  readonly acknowledge: (kit_id: string, ack: CloudAck, retain: boolean) => Promise<void>;
  /** Sends a request of a viewer. Rejects when the kit certainly does not get it. */
  readonly sendViewer: (kit_id: string, request: WhepRequest) => Promise<void>;
  /** Asks the kit to publish everything retained, and its telemetry, again. */
  readonly requestSync: (kit_id: string) => Promise<void>;
}

/** MQTT 5 section 2.4. */
const packet_too_large = 0x95;

export class MessageRefused extends Error {
  override readonly name = 'MessageRefused';
  /** Reason code of the PUBACK (MQTT 5 section 3.4.2.1). */
  readonly code: number;

  constructor(code: number, reason: string) {
    super(texts.broker_refused(reason));
    this.code = code;
  }

  /** A smaller message may be accepted. */
  get isTooLarge(): boolean {
    return this.code === packet_too_large;
  }
}

/** A kit does not execute older tasks; the broker need not keep them longer. */
export const task_expiry_s = 15 * 60;

export interface Order {
  readonly topic: string;
  readonly payload: string;
  readonly expiry_s: number;
}

/** The dispatch of a task. */
export function taskOrder({ kit_id, task_id, created_ms, due_ms, ...order }: TaskOrder): Order {
  const { asset_id, command_name, payload, requested_by } = order;
  const requested_by_name = cut(order.requested_by_name, name_chars_max);
  const created_at = new Date(created_ms).toISOString();
  const body = { task_id, asset_id, command_name, payload, requested_by, requested_by_name, created_at };
  return {
    topic: downTopic(kit_id, { kind: 'task', task_id }),
    payload: JSON.stringify(body),
    expiry_s: Math.min(task_expiry_s, Math.ceil((due_ms - created_ms) / 1_000)),
  };
}

/** A late offer is of no use: the broker forgets it. */
export function viewerOrder(kit_id: string, request: WhepRequest): Order {
  return {
    topic: downTopic(kit_id, { kind: 'whep' }),
    payload: JSON.stringify(request),
    expiry_s: whep_expiry_s,
  };
}

export function cancelOrder(kit_id: string, task_id: string): Order {
  return {
    topic: downTopic(kit_id, { kind: 'cancel', task_id }),
    payload: '{}',
    expiry_s: task_expiry_s,
  };
}
