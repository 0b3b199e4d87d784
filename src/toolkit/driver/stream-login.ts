/** Adds the login to the address of a stream. Where the configuration protects it with TLS, it is not sent over plain RTSP. */
import { texts } from './texts.ts';

/** Both are fields of `AssetDescription`. */
export interface DeviceStream {
  /** With the login in it; null where the stream is withheld. */
  readonly rtsp_url: string | null;
  /** Why the stream is withheld and what to do. */
  readonly stream_fault: string | null;
}

export interface StreamPolicy {
  /** The configuration protects the login of this device with TLS and does not allow plain RTSP. */
  readonly needs_tls: boolean;
}

/**
 * Adds the login to `url`. RTSP hashes a password only if the server asks for that: an attacker who intercepts the connection
 * asks for it in the clear.
 */
export function streamWithLogin(
  url: string,
  login: { readonly username: string; readonly password: string } | undefined,
  { needs_tls }: StreamPolicy,
): DeviceStream {
  if (login === undefined) return { rtsp_url: url, stream_fault: null };
  if (needs_tls && !url.startsWith('rtsps:')) return { rtsp_url: null, stream_fault: texts.plain_rtsp };
  const user = `${encodeURIComponent(login.username)}:${encodeURIComponent(login.password)}@`;
  return { rtsp_url: url.replace('://', () => `://${user}`), stream_fault: null };
}
