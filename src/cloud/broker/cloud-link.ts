/** The way between the service and its kits, the same over MQTT (`broker-link.ts`) and AMQP (`../amqp/amqp-link.ts`). */
import type { PartnerChange } from '../../contract/partners.ts';
import { type WhepRequest, whep_expiry_s } from '../../contract/whep.ts';
import type { CloudAck } from '../../contract/tasks.ts';
import type { FileAnswer } from '../../contract/files.ts';
import type { Dispatcher } from '../service.ts';
import { texts } from '../texts.ts';
import { cut, name_chars_max } from '../../contract/limits.ts';
import { OutcomeUnknown } from '../../mqtt/session.ts';
import { downTopic } from '../../contract/topics.ts';
import type { TaskOrder } from '../stored/stored.ts';

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
  /** After it the broker discards the message. */
  readonly expiry_s?: number;
  /** The broker keeps it, where it can. */
  readonly retain?: boolean;
}

/** What a connection to a broker sends to kits; how, the kind of the broker decides. */
export abstract class CloudLink implements Dispatcher {
  abstract readonly isUp: boolean;
  /** Whether the broker reports which message it refused. */
  abstract readonly reports_refusals: boolean;
  /** Runs until `signal` aborts and the connection is closed. */
  abstract run(signal: AbortSignal): Promise<void>;
  /**
   * Resolves when the broker has accepted it, with whether a session takes it. Rejects with `MessageRefused` when the broker did not
   * accept it, also when it is too large, with `OutcomeUnknown` when it does not answer, else when it could not be sent.
   */
  protected abstract publish(order: Order): Promise<boolean>;

  /**
   * Resolves when the broker has accepted the task, and also when the outcome is unknown: the kit reports it if it got it.
   * Rejects when the task certainly did not reach a kit. It is never sent a second time.
   */
  async dispatch({ kit_id, task_id, created_ms, due_ms, ...order }: TaskOrder): Promise<void> {
    const { asset_id, command_name, payload, requested_by } = order;
    const requested_by_name = cut(order.requested_by_name, name_chars_max);
    const created_at = new Date(created_ms).toISOString();
    const body = { task_id, asset_id, command_name, payload, requested_by, requested_by_name, created_at };
    const expiry_s = Math.min(task_expiry_s, Math.ceil((due_ms - created_ms) / 1_000));
    try {
      await this.#reach(kit_id, { kind: 'task', task_id }, body, expiry_s);
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error;
    }
  }

  async cancel(kit_id: string, task_id: string): Promise<void> {
    await this.#send(kit_id, { kind: 'cancel', task_id }, {}, { expiry_s: task_expiry_s });
  }

  /** Sends a request of a viewer. Rejects when the kit certainly does not get it. A late offer is of no use: the broker forgets it. */
  async sendViewer(kit_id: string, request: WhepRequest): Promise<void> {
    await this.#reach(kit_id, { kind: 'whep' }, request, whep_expiry_s);
  }

  /** Sends what this side has of a partner asset. */
  async sendPartner(kit_id: string, asset_id: string, change: PartnerChange): Promise<void> {
    await this.#send(kit_id, { kind: 'partner', asset_id }, change);
  }

  /** Sends what this side wants of a file. */
  async sendFile(kit_id: string, file_id: string, answer: FileAnswer): Promise<void> {
    await this.#send(kit_id, { kind: 'file', file_id }, answer);
  }

  async acknowledge(kit_id: string, ack: CloudAck, retain: boolean): Promise<void> {
    await this.#send(kit_id, { kind: 'ack' }, ack, { retain });
  }

  /** Asks the kit to publish everything retained, and its telemetry, again. */
  async requestSync(kit_id: string): Promise<void> {
    await this.#send(kit_id, { kind: 'sync' }, {});
  }

  async #reach(kit_id: string, to: DownChannel, body: object, expiry_s: number): Promise<void> {
    if (!(await this.#send(kit_id, to, body, { expiry_s }))) throw new Error(texts.kit_not_connected);
  }

  async #send(
    kit_id: string,
    to: DownChannel,
    body: object,
    how: Pick<Order, 'expiry_s' | 'retain'> = {},
  ): Promise<boolean> {
    return this.publish({ topic: downTopic(kit_id, to), payload: JSON.stringify(body), ...how });
  }
}

type DownChannel = Parameters<typeof downTopic>[1];
