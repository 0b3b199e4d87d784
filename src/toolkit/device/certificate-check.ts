/** Checks device certificates: accepts the configured one, else pins that of the first contact, and rejects any other. */
import type { DriverLog } from '../driver/driver.ts';
import { DeviceRejected } from '../../platform/errors.ts';
import type { MemoryOf } from './device-memory.ts';
import type { CheckCertificate } from './pinned-http.ts';
import { texts } from './texts.ts';

export interface CertificatePin {
  /** SHA-256 from the configuration. */
  readonly configured: string | undefined;
  /** Keeps the fingerprint of the first contact. */
  readonly memory: MemoryOf<{ readonly fingerprint?: string | undefined }>;
  /** Host and port, for the error. */
  readonly address: string;
  readonly log: DriverLog;
}

export function certificateCheck({ configured, memory, address, log }: CertificatePin): CheckCertificate {
  return async (fingerprint) => {
    const expected = configured ?? memory.facts.fingerprint;
    if (expected === undefined) {
      await memory.change({ fingerprint });
      log.info({ address, fingerprint }, texts.certificate_pinned);
      return;
    }
    if (bareFingerprint(expected) === bareFingerprint(fingerprint)) return;
    throw new DeviceRejected(texts.certificate_changed(fingerprint, address));
  };
}

/** Normalizes a fingerprint for comparison: `AB:CD` and `abcd` are the same. */
export function bareFingerprint(fingerprint: string): string {
  return fingerprint.replaceAll(':', '').toLowerCase();
}
