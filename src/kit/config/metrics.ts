/** The section `metrics`: where figures are answered, and who may read them where that is not this machine alone. */
import { resolve } from 'node:path';
import { z } from 'zod';
import { isThisMachine } from '../../platform/networks.ts';
import { readSecret } from './secrets.ts';
import { listenAddress, listenAt } from './service.ts';
import { checkTls, type ServiceTls, tlsOf, tlsSection } from './service-tls.ts';
import type { FaultList } from './source.ts';
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

export interface MetricsConfig {
  readonly listen: { readonly host: string; readonly port: number };
  /** Undefined: figures need none. */
  readonly token: string | undefined;
  /** Undefined: plain HTTP. */
  readonly tls: ServiceTls | undefined;
}

interface MetricsContext {
  /** Where names of files begin that are not absolute. */
  readonly dir: string;
  readonly faults: FaultList;
  readonly warnings: string[];
}

/** Reads the files that the section names. Undefined when there is none, or a fault was added. */
export async function readMetrics(
  section: z.output<typeof metricsSection> | undefined,
  { dir, faults, warnings }: MetricsContext,
): Promise<MetricsConfig | undefined> {
  const listen = section && listenAt(section.listen);
  if (!listen) return undefined;
  const tls = section.tls && tlsOf(section.tls, dir);
  if (section.tls) await checkTls(section.tls, dir, { faults, warnings, at: ['metrics', 'tls'] });
  const { token_file } = section;
  if (!isThisMachine(listen.host) && token_file === undefined && tls?.client_certificates !== 'required')
    faults.add(['metrics', 'listen'], texts.metrics_open(listen.host));
  const token = token_file === undefined ? { value: undefined } : await readToken(resolve(dir, token_file));
  if ('value' in token) return { listen, token: token.value, tls };
  faults.add(['metrics', 'token_file'], token.fault);
  return undefined;
}

/** As RFC 6750, section 2.1, has it; a random one of this length has more different characters. */
const token_form = /^[\w.~+/-]{16,}=*$/u;
const different_min = 8;

async function readToken(file: string): Promise<{ readonly value: string } | { readonly fault: string }> {
  const read = await readSecret(file, { secret: true });
  if ('fault' in read) return read;
  // Prometheus ignores blanks around the token in its own file: the same file may serve both.
  const token = read.value.trim();
  const isWeak = !token_form.test(token) || new Set(token).size < different_min;
  return isWeak ? { fault: texts.weak_token(file) } : { value: token };
}
