/** `kit-connector service enrol`: what a new kit needs to log in at the broker, in one file that its `setup` takes. */
// oxlint-disable-next-line no-restricted-imports -- a command that a person runs, not the daemon; Node.js makes no certificates
import { execFile } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { z } from 'zod';
import { addressFault } from '../../kit/config/broker.ts';
import { readCertificates } from '../../kit/config/secrets.ts';
import { readTextUpTo, small_bytes_max, table_bytes_max } from '../../platform/bounded-file.ts';
import { hasCode } from '../../platform/errors.ts';
import { enrolmentFile } from '../setup/enrolment.ts';
import { unwritable } from '../setup/files.ts';
import { complain, exit, say, type Shell } from '../terminal/shell.ts';
import { texts } from '../texts.ts';
import { type BrokerKind, broker_kinds, brokerSteps } from './broker-steps.ts';

interface EnrolOptions {
  readonly broker: string;
  readonly kitId?: string;
  /** Directory with ca.crt and ca.key, which sign the certificates of kits; made when they are missing. */
  readonly authority: string;
  /** Of the certificate. */
  readonly days: number;
  /** A password in place of a certificate. */
  readonly password?: true;
  /** Authority of the broker's own certificate; undefined: those of the kit's system. */
  readonly ca?: string;
  readonly out?: string;
  /** Undefined: what all of them have to be told is printed. */
  readonly brokerKind?: BrokerKind;
}

/** Writes the file and says what the broker has to be told. The kit's private key and password stand in that file alone. */
export async function enrol(name: string, options: EnrolOptions, shell: Shell): Promise<number> {
  const kit_id = options.kitId ?? randomUUID();
  if (!enrolmentFile.shape.kit_id.safeParse(kit_id).success) throw new Error(texts.kit_id_no_uuid);
  const fault = addressFault(options.broker);
  if (fault !== undefined) throw new Error(`--broker ${fault}`);
  const ca = options.ca === undefined ? {} : { ca: await certificatesIn(options.ca) };
  const file = options.out ?? `${name.replaceAll(/[^\w.-]+/gu, '-')}.kit`;
  // RabbitMQ takes the name of a certificate only where no other is sent, and the others take it in any case.
  const login = options.password
    ? { password: randomBytes(24).toString('base64url') }
    : { username: '', ...(await certificateOf(kit_id, options, shell)) };
  const enrolment: z.input<typeof enrolmentFile> = {
    kit_id,
    kit_name: name,
    broker: options.broker,
    ...ca,
    ...login,
  };
  await writeFile(file, `${JSON.stringify(enrolment, null, 2)}\n`, { mode: 0o600, flag: 'wx' }).catch(
    async (error: unknown) => {
      if (hasCode(error, 'EEXIST')) throw new Error(texts.enrolment_exists(file), { cause: error });
      await rm(file, { force: true });
      unwritable(file)(error);
    },
  );
  say(shell, texts.enrolled(name, kit_id, file));
  const kit = {
    kit_id,
    password: 'password' in login ? login.password : undefined,
    authority: join(options.authority, 'ca.crt'),
  };
  for (const kind of options.brokerKind ? [options.brokerKind] : broker_kinds)
    say(shell, texts.enrol_for(kind), ...brokerSteps(kind, kit).map((line) => `  ${line}`));
  return exit.ok;
}

/** Only its certificates: a file of the broker may hold its private key too, which no kit may have. */
async function certificatesIn(file: string): Promise<string> {
  const read = readCertificates(file, await readTextUpTo(file, table_bytes_max));
  if ('fault' in read) throw new Error(`--ca ${read.fault}`);
  return read.value.join('');
}

/** The common name is the id of the kit, which the samples of the brokers take as its user name. */
async function certificateOf(
  kit_id: string,
  { authority, days }: EnrolOptions,
  shell: Shell,
): Promise<{ readonly cert: string; readonly key: string }> {
  const [ca, ca_key] = [join(authority, 'ca.crt'), join(authority, 'ca.key')];
  if (!existsSync(ca_key)) {
    await mkdir(authority, { recursive: true, mode: 0o700 });
    const subject = ['-subj', '/CN=kit-connector kits', '-days', '3650'];
    await openssl('req', '-x509', ...new_key, '-keyout', ca_key, '-out', ca, ...subject);
    complain(shell, texts.authority_made(authority));
  }
  const dir = await mkdtemp(join(tmpdir(), 'kit-connector-enrol-'));
  try {
    const fileOf = (end: string): string => join(dir, `kit.${end}`);
    const [key, request, cert] = [fileOf('key'), fileOf('csr'), fileOf('crt')];
    await openssl('req', ...new_key, '-keyout', key, '-out', request, '-subj', `/CN=${kit_id}`);
    const signer = ['-CA', ca, '-CAkey', ca_key, '-set_serial', `0x${randomBytes(16).toString('hex')}`];
    await openssl('x509', '-req', '-in', request, '-out', cert, ...signer, '-days', String(days));
    const pem = async (file: string): Promise<string> => readTextUpTo(file, small_bytes_max);
    return { cert: await pem(cert), key: await pem(key) };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

const new_key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

async function openssl(...args: readonly string[]): Promise<void> {
  await promisify(execFile)('openssl', [...args]).catch((error: unknown) => {
    throw hasCode(error, 'ENOENT') ? new Error(texts.openssl_missing, { cause: error }) : error;
  });
}
