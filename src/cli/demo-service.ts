/** The demo's own service: where it listens, and what to try with it. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { assetId } from '../contract/identity.ts';
import type { App } from '../app.ts';
import type { Config } from '../config.ts';
import { loopback } from './embedded-broker.ts';
import { freeTcpPort } from './free-ports.ts';
import type { Paint } from './shell.ts';

const port_wanted = 8_080;
/** Of the drone that the demo flies. */
const drone_key = 'mavlink:00000000000de300';

/** The section of the configuration. The port is kept: a bookmark of the page stays good. */
export async function demoService(): Promise<string> {
  const port = await listenOnce(port_wanted).catch(freeTcpPort);
  return `# The page and the interface of this kit; see service-key beside this file for its API key.
service:
  listen: ${loopback}:${port}
`;
}

/** The configuration, with another port for the service where another program, such as a second demo, has that one now. */
export async function withFreePort(config: Config): Promise<Config> {
  const { service } = config;
  if (!service) return config;
  const port = await listenOnce(service.listen.port).catch(freeTcpPort);
  return { ...config, service: { ...service, listen: { ...service.listen, port } } };
}

/** What somebody who has just started the demo reads of it; nothing when no service is configured. */
export function demoServiceLines({ service }: App, { kit_id }: Config, paint: Paint): readonly string[] {
  const url = service?.url();
  if (!service || url === undefined) return [];
  const key = readFileSync(service.key_file, 'utf8').trim();
  const drone = assetId(kit_id, drone_key);
  const task = `${url}/api/kits/${kit_id}/assets/${drone}/commands/goto_waypoint`;
  const body = '{"payload":{"lat":47.3985,"lon":8.5456,"alt_m":30}}';
  return [
    `The page of this kit: ${paint('bold', url)}`,
    `Its API key: ${paint('bold', key)}`,
    'What a client of the interface does:',
    paint('bold', `  curl -H 'X-API-Key: ${key}' ${url}/api/kits`),
    paint('bold', `  curl -H 'X-API-Key: ${key}' -H 'Content-Type: application/json' -d '${body}' ${task}`),
    '',
  ];
}

/** The port when it can be listened on; rejects when it is taken. */
async function listenOnce(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(port, loopback, () => server.close(() => resolve(port)));
  });
}
