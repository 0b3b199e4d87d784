/** Finds cameras by WS-Discovery for `setup`. The technician fills in their user and password. */
import { randomUUID } from 'node:crypto';
import type { RemoteInfo } from 'node:dgram';
import onvif from 'onvif';
import type { Suggestion } from '../../src/toolkit/driver/suggest.ts';
import { type CameraSuggestion, discover, type DiscoveryOptions, readMatches } from './discovery.ts';

const window_ms = 2_500;
const usual_path = '/onvif/device_service';

export async function suggest(
  signal: AbortSignal,
  where: Pick<DiscoveryOptions, 'target' | 'device'> = {},
): Promise<readonly Suggestion[]> {
  const both = await Promise.all([
    discover({ signal, window_ms, ...where }),
    where.target ? [] : discoverByLibrary(where.device),
  ]);
  return [...new Map(both.flat().map((each) => [each.endpoint, each])).values()].map(suggestionOf);
}

/**
 * The probe of npm onvif, which most programs send: some cameras answer to it and to no other. It reads an answer without a limit,
 * which may delay a command and must not delay the daemon, so `lookAround` does without it.
 */
export async function discoverByLibrary(device: string | undefined): Promise<readonly CameraSuggestion[]> {
  const messageId = randomUUID();
  const found: CameraSuggestion[] = [];
  const take = (_: unknown, { address }: RemoteInfo, xml: string): void => {
    found.push(...readMatches(xml, messageId, address));
  };
  // Answers that are none, and a machine without a network.
  const ignore = (): undefined => undefined;
  onvif.Discovery.on('device', take).on('error', ignore);
  await new Promise<void>((resolve) => {
    const options = {
      timeout: window_ms,
      resolve: false,
      messageId,
      ...(device !== undefined && { device }),
    };
    onvif.Discovery.probe(options, () => resolve());
  });
  onvif.Discovery.off('device', take).off('error', ignore);
  return found;
}

function suggestionOf({ host, port, path, secure, name, model }: CameraSuggestion): Suggestion {
  return {
    what: `ONVIF camera at ${host}: ${[name, model].filter(Boolean).join(', ') || 'without a name'}`,
    options: {
      cameras: [
        {
          name: name ?? `Camera ${host}`,
          host,
          ...(port === (secure ? 443 : 80) ? {} : { port }),
          ...(path === usual_path ? {} : { path }),
          ...(secure ? { tls: {} } : {}),
          username: 'admin',
          password_file: `/etc/kit-connector/secrets/camera-${host}`,
        },
      ],
    },
    complete: false,
  };
}
