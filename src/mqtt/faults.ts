/** Errors of sockets and TLS in words: what is wrong and what to do, without the text of a library. */
import { texts } from './texts.ts';

/** Azure/iotedge#6877, Azure/azure-iot-explorer#604: filters that read TLS answer with certificates of their own. */
const pass =
  'unless a filter or a login page of this network answers in its place, which must let the broker pass';
// emqx/emqx#890, vernemq/vernemq#865.
const check_ca = `install the certificate of its authority on this machine, or name it as broker.ca_file, or have the broker send its whole chain (fullchain.pem) where its authority is a public one, ${pass}`;
const untrusted = `the authority that signed the certificate of the broker is not trusted; ${check_ca}`;

const by_code: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused; check the port in broker.url, and that the broker runs',
  ECONNRESET: 'connection reset by peer',
  EPIPE: 'connection reset by peer',
  ETIMEDOUT: 'connection timed out; check the link and the firewall between',
  EHOSTUNREACH: 'no route to host; check the WAN links',
  ENETUNREACH: 'network is unreachable; check the WAN links',
  EINVAL: 'a route of this machine discards what is sent to the broker (blackhole); check ip route',
  EACCES: 'a route of this machine prohibits the address of the broker; check ip route',
  EPERM: 'the firewall of this machine blocks the broker; allow its address and port',
  ENOTFOUND: 'the name of the broker is not known; check broker.url and the name servers',
  // An answer that says SERVFAIL is reported so, too: systemd/systemd#20235, systemd/systemd#5873.
  EAI_AGAIN:
    'no name server answered for the broker, or it failed; check the WAN links, the name servers and the clock (kit-connector doctor names which)',
  NAME_BLOCKED:
    'the name servers answer 0.0.0.0 for the broker, as filters of names do that block it; have its name allowed there, or use other name servers',
  CERT_HAS_EXPIRED:
    'the certificate of the broker, or of an authority of it, has expired; renew it (kit-connector doctor names which), and check the clock of this machine',
  CERT_NOT_YET_VALID: 'the certificate of the broker is not valid yet; check the clock of this machine',
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  DEPTH_ZERO_SELF_SIGNED_CERT: `the certificate of the broker is self-signed and not trusted; ${check_ca}`,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  CERT_SIGNATURE_FAILURE: 'the certificate of the broker is forged or damaged',
  CERT_REVOKED: 'the certificate of the broker was revoked',
  CA_MD_TOO_WEAK: 'the certificate of the broker has a signature that is too weak; renew it',
  EE_KEY_TOO_SMALL: 'the key of the broker is too small; renew its certificate',
  CA_KEY_TOO_SMALL: 'the key of the authority is too small; renew it',
  ERR_TLS_CERT_ALTNAME_INVALID: `the certificate of the broker is for another name; write the name that it has into broker.url, ${pass}`,
};

/** What the broker wants of this machine's own certificate. */
export const certificate_missing =
  'the broker ended the TLS handshake: it may require a client certificate; name broker.cert_file and broker.key_file';
export const certificate_refused = 'the broker does not accept the certificate of this kit';

/** Names of OpenSSL's reasons, as Node puts them into the code of an error, and what each means here. */
const by_tls_reason: readonly (readonly [RegExp, string])[] = [
  [
    /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST/u,
    'the port does not use TLS; check broker.url',
  ],
  [/UNSUPPORTED_PROTOCOL|PROTOCOL_VERSION|VERSION_TOO_LOW/u, 'the broker does not offer TLS 1.2 or later'],
  // 116 of TLS 1.3, 40 of TLS 1.2, and 41 of mbedTLS, which takes the one of SSL 3 (Mbed-TLS/mbedtls 10900).
  [/CERTIFICATE_REQUIRED|ALERT_HANDSHAKE_FAILURE|ALERT_NO_CERTIFICATE/u, certificate_missing],
  // eclipse-mosquitto/mosquitto#3352: a certificate of an intermediate authority, which has to be in the file.
  [
    /ALERT_UNKNOWN_CA/u,
    `${certificate_refused}, whose authority it does not know; check that broker.cert_file holds the whole chain, and which authority the broker trusts for kits`,
  ],
  [
    /ALERT_CERTIFICATE_EXPIRED/u,
    `${certificate_refused}, or that of its authority, as expired; renew broker.cert_file, or correct the clock of the broker`,
  ],
  [
    /ALERT_(?:BAD_CERTIFICATE|CERTIFICATE_UNKNOWN|CERTIFICATE_REVOKED|UNSUPPORTED_CERTIFICATE|DECRYPT_ERROR|ACCESS_DENIED)/u,
    // What is not valid yet is bad, too.
    `${certificate_refused}; check broker.cert_file, and the clock of the broker if the certificate is new`,
  ],
  [
    /DH_KEY_TOO_SMALL|EE_KEY_TOO_SMALL|CA_KEY_TOO_SMALL|MD_TOO_WEAK/u,
    'the keys of the broker are too weak; renew them',
  ],
];

/** Where the resolver of the system fails, its code is any of the system: EINVAL is no route then (systemd/systemd#29883). */
function isOfResolver(error: Error, code: string): boolean {
  return 'syscall' in error && error.syscall === 'getaddrinfo' && code !== 'ENOTFOUND';
}

/** Keeps what has no entry, unless it is raw text of OpenSSL. */
export function plainFault(error: Error): string {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  const known = by_code[isOfResolver(error, code) ? 'EAI_AGAIN' : code];
  if (known !== undefined) return known;
  if (code.startsWith('HPE_')) return texts.no_web_server;
  const isTls = code.startsWith('ERR_SSL') || code === 'EPROTO' || error.message.includes('SSL routines');
  if (!isTls) return error.message;
  const reason = `${code} ${error.message.replaceAll(/[ :]+/gu, '_').toUpperCase()}`;
  const found = by_tls_reason.find(([pattern]) => pattern.test(reason));
  return found ? found[1] : `the TLS handshake with the broker failed (${code})`;
}
