/** Finds cameras with one WS-Discovery probe. The technician fills in their user and password. */
import type { Suggestion } from '../../src/driver/suggest.ts';
import { type CameraSuggestion, discover, type DiscoveryOptions } from './discovery.ts';

const window_ms = 2_500;
const usual_path = '/onvif/device_service';

export async function suggest(
  signal: AbortSignal,
  where: Pick<DiscoveryOptions, 'target' | 'device'> = {},
): Promise<readonly Suggestion[]> {
  const cameras = await discover({ signal, window_ms, ...where });
  return cameras.map(suggestionOf);
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
