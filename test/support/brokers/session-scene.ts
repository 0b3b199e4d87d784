/** Sessions with a broker that does what the test tells it to. */
import type { ConnectOptions } from '../../../src/mqtt/connect.ts';
import { openSession, type Session } from '../../../src/mqtt/session.ts';
import { type Script, type ScriptedBroker, startScriptedBroker } from './scripted-broker.ts';
import { brokerOptions } from './broker-options.ts';

interface Scene {
  readonly broker: ScriptedBroker;
  readonly open: (changes?: Partial<ConnectOptions> & { readonly answer_ms?: number }) => Promise<Session>;
}

/** Opens sessions as the kit does; ends them and the broker after `play`. */
export async function withBroker(script: Script, play: (scene: Scene) => Promise<void>): Promise<void> {
  const broker = await startScriptedBroker(script);
  const end = new AbortController();
  const sessions: Session[] = [];
  try {
    const open: Scene['open'] = async ({ answer_ms = 10_000, ...changes } = {}) => {
      const session = await openSession(
        {
          broker: brokerOptions(broker.url, { connect_timeout_ms: answer_ms }),
          client_id: 'kit',
          protocol: '5',
          session_expiry_s: 600,
          receive_maximum: 16,
          packet_bytes_max: 10_000,
          onMessage: async () => true,
          onOversize: () => undefined,
          ...changes,
        },
        end.signal,
      );
      sessions.push(session);
      return session;
    };
    await play({ broker, open });
  } finally {
    end.abort();
    for (const session of sessions) session.destroy('the test is over');
    await broker.close();
  }
}
