/** The section `metrics`: where figures are answered, and who may read them where that is not this machine alone. */
import { resolve } from 'node:path';
import { z } from 'zod';
import { isThisMachine } from '../../platform/networks.ts';
import { namedSecret } from './secrets.ts';
import { listenAddress, listenAt } from './service.ts';
import { checkTls, tlsOf, tlsSection } from './service-tls.ts';
import type { Reading } from './source.ts';
import { texts } from './texts.ts';

export const metricsSection = z.strictObject({
  listen: listenAddress.describe(
    'where /metrics and /healthz are answered; 127.0.0.1:9464 is the usual place, and other addresses need token_file, or tls with client_ca_file',
  ),
  token_file: z
    .string()
    .min(1)
    .optional()
    .describe(
      'holds the token that Prometheus sends ("Authorization: Bearer TOKEN") and nothing else (chmod 640); /healthz answers without it, and then without its sentence',
    ),
  tls: tlsSection.optional().describe('left out: plain HTTP'),
});

export type MetricsConfig = NonNullable<Awaited<ReturnType<typeof readMetrics>>>;

/** Reads the files that the section names. */
export async function readMetrics(section: z.output<typeof metricsSection> | undefined, reading: Reading) {
  const listen = section && listenAt(section.listen);
  if (!listen) return undefined;
  const { dir, faults } = reading;
  const tls = section.tls && tlsOf(section.tls, dir);
  if (section.tls) await checkTls(section.tls, ['metrics', 'tls'], reading);
  const { token_file } = section;
  if (!isThisMachine(listen.host) && token_file === undefined && tls?.client_certificates !== 'required')
    faults.add(['metrics', 'listen'], texts.metrics_open(listen.host));
  const at = ['metrics', 'token_file'];
  // Prometheus ignores blanks around the token in its own file: the same file may serve both.
  const token = (await namedSecret(token_file, at, reading))?.trim();
  if (token_file && isWeak(token)) faults.add(at, texts.weak_token(resolve(dir, token_file)));
  return { listen, token, tls };
}

/** As RFC 6750, section 2.1, has it; a random one of this length has more different characters. */
const token_form = /^[\w.~+/-]{16,}=*$/u;
const different_min = 8;

/** Undefined: the file could not be read, which is said already. */
function isWeak(token: string | undefined): boolean {
  return token !== undefined && (!token_form.test(token) || new Set(token).size < different_min);
}
