/** The cloud on the emulated machine: subscribes at the broker there, keeps what it receives in a file, and sends tasks. */
import { downTopic, upTopic } from '../../../src/contract/topics.ts';
import type { Machine } from './machine.ts';

const received = '/root/received';

/** The broker of the machine is the package's own service of Debian: on the loopback, without logins. */
const broker = { host: '127.0.0.1', port: 1883 };
export const broker_url = `mqtt://${broker.host}:${broker.port}`;

/** Receives everything of this kit from now on. */
export async function subscribeInside({ sh }: Machine, kit_id: string): Promise<void> {
  await sh(`systemctl is-active mosquitto
systemd-run --quiet --unit=cloud --property=StandardOutput=append:${received} \\
  stdbuf --output=L mosquitto_sub --host ${broker.host} --qos 1 --topic '${upTopic(kit_id, '#')}' -F '%t %p'`);
}

/** The messages of topics that match this basic regular expression, each as topic, space and payload. */
export async function receivedInside({ sh }: Machine, topics: string): Promise<readonly string[]> {
  const text = await sh(`grep --text -e '^${topics} ' ${received} || true`);
  return text === '' ? [] : text.split('\n');
}

export interface Dispatch {
  readonly kit_id: string;
  readonly task_id: string;
  readonly asset_id: string;
  readonly command_name: string;
}

/** Sends a task without parameters, created now by the clock of the machine. */
export async function dispatchInside({ sh }: Machine, { kit_id, ...task }: Dispatch): Promise<void> {
  const topic = downTopic(kit_id, { kind: 'task', task_id: task.task_id });
  const body = JSON.stringify({ ...task, payload: {}, created_at: 'NOW' });
  await sh(`mosquitto_pub --host ${broker.host} --qos 1 --topic '${topic}' \\
  --message "$(echo '${body}' | sed "s/NOW/$(date --utc +%Y-%m-%dT%H:%M:%SZ)/")"`);
}
