/** Says in words why a connection to a device failed; the name of the device stands before them. */
import { messageOf } from '../../platform/errors.ts';
import { texts } from './texts.ts';

/** Sentences for error codes of the operating system. */
const sentences_by_code: Readonly<Record<string, string>> = {
  EHOSTUNREACH: texts.no_route,
  ENETUNREACH: texts.network_unreachable,
  ETIMEDOUT: texts.connect_timeout,
  ENOTFOUND: texts.host_unknown,
  EAI_AGAIN: texts.host_unresolved,
  ECONNRESET: texts.connection_closed,
  EPIPE: texts.connection_closed,
};

/** Undefined for an error that is not one of a connection. Failures of several addresses arrive as one error without a message. */
export function connectionFault(error: unknown, refused_remedy: string): string | undefined {
  const first: unknown = error instanceof AggregateError && error.message === '' ? error.errors[0] : error;
  const code = codeOf(first);
  if (code === undefined) return undefined;
  if (code === 'ECONNREFUSED') return texts.connection_refused(refused_remedy);
  if (isLegacyTls(code)) return texts.legacy_tls_only;
  if (code.startsWith('HPE_')) return texts.not_http;
  if (code.startsWith('ERR_SSL') || code === 'EPROTO') {
    return isNotTls(`${code} ${messageOf(first)}`)
      ? texts.not_tls
      : texts.tls_failed(code === 'EPROTO' ? messageOf(first) : code);
  }
  return sentences_by_code[code] ?? texts.request_failed(messageOf(first));
}

/** Whether a handshake failed because the device has TLS 1.0 or 1.1 only. */
export function isLegacyTls(code: string): boolean {
  return /UNSUPPORTED_PROTOCOL|PROTOCOL_VERSION|VERSION_TOO_LOW/u.test(code);
}

/** What answers is no TLS at all. Any other failure of a handshake is told as OpenSSL tells it. */
function isNotTls(words: string): boolean {
  return /WRONG.VERSION.NUMBER|HTTP.REQUEST|PACKET.LENGTH.TOO.LONG|UNKNOWN.PROTOCOL/iu.test(words);
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
