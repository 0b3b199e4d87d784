/** The queue of RabbitMQ from which the service takes the messages of kits, in place of a subscription of MQTT. */
import { resolve } from 'node:path';
import { z } from 'zod';
import { isThisMachine, readCertificates, readSecret } from '../secrets.ts';
import type { FaultList } from '../source.ts';
import { texts } from '../texts.ts';

const url = z
  .string()
  .refine(
    (text) => /^amqps?:\/\/[^/]/u.test(text) && URL.canParse(text),
    'write it like amqps://rabbit.example.com:5671',
  )
  .refine((text) => {
    if (!URL.canParse(text)) return true;
    const { username, password, pathname, search } = new URL(text);
    return username === '' && password === '' && (pathname === '' || pathname === '/') && search === '';
  }, 'write scheme, host and port only; user, password and vhost have separate keys');

const word = z
  .string()
  .min(1)
  .max(127)
  .regex(/^[\w.:-]+$/u, 'write letters, digits, ".", ":", "-" and "_" only');

export const ingestSection = z.strictObject({
  amqp: z
    .strictObject({
      urls: z
        .array(url)
        .min(1)
        .max(16)
        .describe('nodes of the cluster, tried in turn: amqps://host:5671, or amqp://host:5672'),
      username: z.string().min(1).max(255).default('cloud').describe('user of RabbitMQ'),
      password_file: z.string().min(1).describe('file that holds its password and nothing else'),
      ca_file: z.string().min(1).optional().describe('PEM; the authority of the nodes, with amqps'),
      vhost: z.string().min(1).max(255).default('/').describe('virtual host'),
      queue: word
        .default('kit-service')
        .describe('quorum queue, made when missing; the same for all replicas'),
      exchange: word.default('amq.topic').describe('topic exchange of the MQTT plugin (its mqtt.exchange)'),
      prefetch: z
        .int()
        .min(10)
        .max(10_000)
        .default(500)
        .describe('messages that a replica holds without having stored them; 64 MiB of them at most'),
    })
    .describe('RabbitMQ by AMQP 0-9-1'),
});

export interface AmqpConfig {
  readonly urls: readonly string[];
  readonly username: string;
  readonly password: string;
  readonly ca: string | undefined;
  readonly vhost: string;
  readonly queue: string;
  readonly exchange: string;
  readonly prefetch: number;
}

/** Reads the files that the section names. Undefined when a fault was added. */
export async function readAmqp(
  { amqp }: z.output<typeof ingestSection>,
  dir: string,
  { faults, warnings }: { readonly faults: FaultList; readonly warnings: string[] },
): Promise<AmqpConfig | undefined> {
  const { password_file, ca_file, ...rest } = amqp;
  const at = (key: string): string[] => ['ingest', 'amqp', key];
  const password = await readSecret(resolve(dir, password_file), { secret: true });
  if ('fault' in password) faults.add(at('password_file'), password.fault);
  const ca = ca_file === undefined ? undefined : await readAuthority(resolve(dir, ca_file));
  if (ca && 'fault' in ca) faults.add(at('ca_file'), ca.fault);
  checkTransport(amqp, { faults, warnings });
  if ('fault' in password || (ca && 'fault' in ca)) return undefined;
  return { ...rest, password: password.value.replace(/\r?\n$/u, ''), ca: ca?.value };
}

async function readAuthority(file: string): ReturnType<typeof readSecret> {
  const read = await readSecret(file, { secret: false });
  if ('fault' in read) return read;
  const certificates = readCertificates(file, read.value);
  return 'fault' in certificates ? certificates : read;
}

/** What makes no sense without encryption. */
function checkTransport(
  { urls, ca_file }: z.output<typeof ingestSection>['amqp'],
  { faults, warnings }: { readonly faults: FaultList; readonly warnings: string[] },
): void {
  const isPlain = (each: string): boolean => each.startsWith('amqp:');
  const open = urls.find((each) => isPlain(each) && !isThisMachine(new URL(each).hostname));
  if (open !== undefined) warnings.push(texts.password_in_clear(open, texts.write_amqps));
  if (ca_file !== undefined && urls.every(isPlain))
    faults.add(['ingest', 'amqp', 'ca_file'], texts.amqp_no_effect_without_tls);
}
