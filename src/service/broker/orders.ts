/** What the service sends to kits, the same over MQTT and AMQP. */
import { cut, name_chars_max } from '../../contract/limits.ts';
import { downTopic } from '../../contract/topics.ts';
import type { TaskOrder } from '../store/store.ts';

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

export function cancelOrder(kit_id: string, task_id: string): Order {
  return {
    topic: downTopic(kit_id, { kind: 'cancel', task_id }),
    payload: '{}',
    expiry_s: task_expiry_s,
  };
}
