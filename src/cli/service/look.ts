/** What doctor, status and support bundle of the service for many kits look at: its configuration, whether it answers, and its database. */
import { existsSync } from 'node:fs';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { z } from 'zod';
import { isOnline } from '../../cloud/api/views.ts';
import { nameOf, openStore } from '../../cloud/open-store.ts';
import { inspectPostgres, type PostgresFacts } from '../../cloud/sql/inspect.ts';
import { schema } from '../../cloud/sql/schema.ts';
import type { Store } from '../../cloud/store/sql-store.ts';
import { parseSource, readSource } from '../../kit/config/source.ts';
import {
  readDatabase,
  readStandalone,
  standalone_file_default,
  type StandaloneConfig,
} from '../../kit/config/standalone.ts';
import { ConfigInvalid, hasCode, messageOf, systemReason } from '../../platform/errors.ts';

/** Name of its unit, its user and its credentials. */
export const service_unit = 'kit-connector-service';
const answer_ms = 4_000;
const answer_chars_max = 10_000;

export interface ServiceFile {
  readonly file: string;
  /** It is that of the package. */
  readonly isPackaged: boolean;
  /** As parsed; undefined when it cannot be. */
  readonly value: unknown;
  readonly config: StandaloneConfig | undefined;
  readonly faults: readonly string[];
  /** Undefined when the file does not say which. */
  readonly database: StandaloneConfig['database'] | undefined;
}

export async function readServiceFile(
  file: string,
  credentials_dir: string | undefined,
): Promise<ServiceFile> {
  const isPackaged = file === standalone_file_default;
  const value = await readSource(file)
    .then((text): unknown => parseSource(file, text).value)
    .catch(() => undefined);
  const database = await readDatabase(file, undefined).catch(() => undefined);
  try {
    const config = await readStandalone(file, credentials_dir);
    return { file, isPackaged, value, config, faults: [], database };
  } catch (error) {
    const faults = error instanceof ConfigInvalid ? error.faults : [messageOf(error)];
    return { file, isPackaged, value, config: undefined, faults, database };
  }
}

export type Answer =
  | { readonly state: 'ready' }
  /** `reason`: why messages and tasks do not get through. */
  | { readonly state: 'unready' | 'stopped' | 'unknown'; readonly reason: string };

const problem = z.object({ detail: z.string() });

/** Whether the service that this file configures answers on this machine. */
export async function askService({ listen, tls }: StandaloneConfig, signal: AbortSignal): Promise<Answer> {
  const over = AbortSignal.any([signal, AbortSignal.timeout(answer_ms)]);
  const { host, port } = listen;
  const request = { host, port, path: '/ready', signal: over, agent: false };
  try {
    const { status, text } = await new Promise<{ status: number; text: string }>((resolve, reject) => {
      // Its certificate is for the name that clients use, and is checked by itself.
      const sent = tls ? requestHttps({ ...request, rejectUnauthorized: false }) : requestHttp(request);
      sent.on('error', reject).on('response', (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (part: string) => {
          if (text.length < answer_chars_max) text += part;
        });
        response.on('error', reject).on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      });
      sent.end();
    });
    if (status === 200) return { state: 'ready' };
    const { detail } = problem.catch({ detail: `HTTP ${status}` }).parse(parsed(text));
    return { state: status === 503 ? 'unready' : 'unknown', reason: detail };
  } catch (error) {
    return { state: hasCode(error, 'ECONNREFUSED') ? 'stopped' : 'unknown', reason: systemReason(error) };
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface DatabaseLook {
  readonly name: string;
  readonly kind: 'sqlite' | 'postgres';
  /** Of a PostgreSQL that answered. */
  readonly server: PostgresFacts | undefined;
  /** `absent`: the service makes its tables at its first start. */
  readonly state: 'open' | 'absent' | 'closed';
  /** Why it is closed, with the remedy behind a semicolon. */
  readonly fault: string | undefined;
  readonly schema_version: number;
  /** Of an open one. */
  readonly content: Content | undefined;
}

type Kits = Awaited<ReturnType<Store['kits']>>;
interface Content {
  readonly kits: { readonly known: number; readonly online: number; readonly last_ms: number | undefined };
  readonly keys: Awaited<ReturnType<Store['keys']>>;
  readonly webhooks: Awaited<ReturnType<Store['webhooks']>>;
}

/** Opens it as the other commands do, which make and change no tables. */
export async function lookAtDatabase(choice: StandaloneConfig['database']): Promise<DatabaseLook> {
  const look = { name: nameOf(choice), kind: choice.kind, schema_version: schema.version };
  const closed = (error: unknown, server?: PostgresFacts): DatabaseLook => ({
    ...look,
    server,
    state: 'closed',
    fault: messageOf(error),
    content: undefined,
  });
  let server: PostgresFacts | undefined;
  try {
    if (choice.kind === 'postgres') server = await inspectPostgres(choice, choice.isReplicated);
    const hasTables = choice.kind === 'sqlite' ? existsSync(choice.file) : server?.has_tables === true;
    if (!hasTables) return { ...look, server, state: 'absent', fault: undefined, content: undefined };
    const { store } = await openStore(choice, { upgrade: 'never' });
    try {
      const [kits, keys, webhooks] = [await store.kits('*'), await store.keys(), await store.webhooks()];
      const content = { kits: kitCounts(kits), keys, webhooks };
      return { ...look, server, state: 'open', fault: await store.schemaFault(), content };
    } finally {
      await store.close();
    }
  } catch (error) {
    return closed(error, server);
  }
}

function kitCounts(kits: Kits): Content['kits'] {
  const now_ms = Date.now();
  const heard = kits.map(({ heard_ms }) => heard_ms ?? 0);
  return {
    known: kits.length,
    online: kits.filter((kit) => isOnline(kit, now_ms)).length,
    last_ms: heard.length === 0 ? undefined : Math.max(...heard),
  };
}
