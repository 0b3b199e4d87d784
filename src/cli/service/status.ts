/** `kit-connector service status`: what the service for many kits does and holds. */
import type { StandaloneConfig } from '../../kit/config/standalone.ts';
import { ConfigInvalid } from '../../platform/errors.ts';
import { localTime } from '../../platform/local-time.ts';
import { plain } from '../doctor/finding.ts';
import { exit, painter, printJson, say, type Shell, table } from '../terminal/shell.ts';
import { texts } from '../texts.ts';
import { version } from '../version.ts';
import { type Answer, askService, lookAtDatabase, readServiceFile } from './look.ts';

interface ServiceStatusOptions {
  readonly config: string;
  readonly json?: true;
}

/** Exit code 69 while the service does not answer. */
export async function serviceStatus(
  { config: file, json }: ServiceStatusOptions,
  shell: Shell,
): Promise<number> {
  const { config, faults } = await readServiceFile(file, shell.env['CREDENTIALS_DIRECTORY']);
  if (!config) throw new ConfigInvalid(faults);
  const status = await statusOf(config, shell.signal);
  if (json) printJson(shell, status);
  else say(shell, ...table(rowsOf(status, painter(shell)), ''));
  return status.service.state === 'stopped' ? exit.unavailable : exit.ok;
}

/** Without secrets: of a webhook the label and the counts, since its address may be one. */
export async function statusOf(config: StandaloneConfig, signal: AbortSignal) {
  const [service, database] = await Promise.all([
    askService(config, signal),
    lookAtDatabase(config.database),
  ]);
  const { content, server } = database;
  return {
    version: version(),
    service,
    listen: `${config.listen.host}:${config.listen.port}`,
    source: config.broker?.url ?? config.amqp?.urls.join(', ') ?? '',
    database: {
      name: database.name,
      state: database.state,
      fault: database.fault,
      server,
      schema_version: server ? server.schema_version : database.schema_version,
    },
    kits: content?.kits,
    keys: content?.keys.map(({ key_id, label, scopes, expires_ms, used_ms }) => ({
      key_id,
      label,
      scopes,
      expires_ms,
      used_ms,
    })),
    webhooks: content?.webhooks.map(({ label, disabled_reason, failures, last_fault, counts }) => ({
      label,
      disabled_reason,
      failures,
      last_fault,
      counts,
    })),
  };
}

function rowsOf(
  {
    version: own,
    service,
    listen,
    source,
    database,
    kits,
    keys = [],
    webhooks = [],
  }: Awaited<ReturnType<typeof statusOf>>,
  paint: ReturnType<typeof painter>,
): readonly (readonly string[])[] {
  const sum = (count: 'waiting' | 'dead'): number =>
    webhooks.reduce((all, { counts }) => all + counts[count], 0);
  const last = kits?.last_ms;
  return [
    [texts.service, `kit-connector ${own} ${serviceWords(service, paint)}  ${listen}`],
    ['broker', source],
    ['database', `${database.name}  ${databaseWords(database)}`],
    ...(kits
      ? [
          ['kits', texts.kits_of(kits.known, kits.online, last === undefined ? undefined : localTime(last))],
          ['keys', String(keys.length)],
          ['webhooks', texts.webhooks_of(webhooks.length, sum('waiting'), sum('dead'))],
        ]
      : []),
    ...(database.server ? [['replicas', String(database.server.replicas)]] : []),
  ];
}

function serviceWords(answer: Answer, paint: ReturnType<typeof painter>): string {
  if (answer.state === 'ready') return paint('good', answer.state);
  return paint('bad', `${texts.service_states[answer.state]}: ${plain(answer.reason)}`);
}

function databaseWords({
  state,
  fault,
  schema_version,
}: Awaited<ReturnType<typeof statusOf>>['database']): string {
  if (fault !== undefined) return plain(fault);
  return state === 'absent' ? texts.no_tables : texts.tables_version(schema_version ?? 0);
}
