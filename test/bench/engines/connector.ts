/** The connector's own outbox and uplink as an engine. */
import { startConnector } from '../../support/kit/connector.ts';
import { window_messages, type Engine, type EngineChoice } from './engine.ts';
import type { Target } from './mqttjs.ts';

/** Opens the buffer and resolves once it is connected. */
export async function openConnector(
  choice: Extract<EngineChoice, { kind: 'connector' }>,
  target: Target,
): Promise<Engine> {
  const connected = Promise.withResolvers<void>();
  const lost = Promise.withResolvers<void>();
  const { kind: _, offline, ...settings } = choice;
  const connector = await startConnector({
    ...settings,
    ...target,
    window_messages,
    // Nobody plays the cloud here: the broker's word counts, as it does for what stands beside the connector.
    ack: 'broker',
    onConnected: () => connected.resolve(),
    onDisconnected: () => lost.resolve(),
  });
  if (!offline) await connected.promise;
  return {
    send(durability, source, data) {
      connector.send(durability === 'sync' ? 'alarm' : 'feed', source, data);
    },
    get acknowledged() {
      return connector.acknowledged;
    },
    lost: lost.promise,
    close: async () => connector.stop(),
  };
}
