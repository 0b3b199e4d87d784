/** A kit at a broker that does what the test tells it to. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { type Connector, type ConnectorOptions, startConnector } from '../kit/connector.ts';
import { makeDirectory } from '../temporary.ts';
import { type Script, type ScriptedBroker, startScriptedBroker } from './scripted-broker.ts';

interface KitScene {
  readonly broker: ScriptedBroker;
  readonly kit: Connector;
  /** Its log: each sentence with its facts. */
  readonly lines: readonly string[];
}

/** Both end with the test, which is none of several that run at a time. */
export async function kitAt(script: Script, options: Partial<ConnectorOptions> = {}): Promise<KitScene> {
  const dir = await makeDirectory();
  const broker = await startScriptedBroker(script);
  const lines: string[] = [];
  const log = (sentence: string, facts: object): void =>
    void lines.push(`${sentence} ${JSON.stringify(facts)}`);
  const kit = await startConnector({ file: join(dir, 'buffer.db'), url: broker.url, log, ...options });
  onTestFinished(async () => {
    await kit.stop();
    await broker.close();
    await rm(dir, { recursive: true, force: true, maxRetries: 3 });
  });
  return { broker, kit, lines };
}
