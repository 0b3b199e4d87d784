/** The service of the demo: its port, and example requests. */
import { assetId } from '../../contract/identity.ts';
import type { App } from '../../app/app.ts';
import type { Config } from '../../config/config.ts';
import { loopback } from './embedded-broker.ts';
import { freeTcpPort, isUsable } from './free-ports.ts';
import type { Paint } from '../terminal/shell.ts';
import { readTextUpToSync, small_bytes_max } from '../../platform/bounded-file.ts';

const port_wanted = 8_080;
/** Key of the simulated drone. */
const drone_key = 'mavlink:00000000000de300';

/** The section of the configuration. The port is stored so that a bookmark of the page stays valid. */
export async function demoService(): Promise<string> {
  const port = await usableOrFree(port_wanted);
  return `# Page and HTTP API of this kit; its API key is in the file service-key beside this one.
service:
  listen: ${loopback}:${port}
`;
}

/** The configuration, with another port for the service if another program, such as a second demo, uses the configured one. */
export async function withFreePort(config: Config): Promise<Config> {
  const { service } = config;
  if (!service) return config;
  const port = await usableOrFree(service.listen.port);
  return { ...config, service: { ...service, listen: { ...service.listen, port } } };
}

/** The introduction of the service; empty when no service is configured. */
export function demoServiceLines({ service }: App, { kit_id }: Config, paint: Paint): readonly string[] {
  const url = service?.url();
  if (!service || url === undefined) return [];
  const key = readTextUpToSync(service.key_file, small_bytes_max).trim();
  const drone = assetId(kit_id, drone_key);
  const task = `${url}/api/kits/${kit_id}/assets/${drone}/commands/goto_waypoint`;
  const body = '{"payload":{"lat":47.3985,"lon":8.5456,"alt_m":30}}';
  return [
    `Web page of this kit: ${paint('bold', url)}`,
    `API key: ${paint('bold', key)}`,
    'Example API requests:',
    paint('bold', `  curl -H 'X-API-Key: ${key}' ${url}/api/kits`),
    paint('bold', `  curl -H 'X-API-Key: ${key}' -H 'Content-Type: application/json' -d '${body}' ${task}`),
    '',
  ];
}

async function usableOrFree(port: number): Promise<number> {
  return (await isUsable(port)) ? port : freeTcpPort();
}
