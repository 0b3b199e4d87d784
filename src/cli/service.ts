/** `kit-connector service`: the Kit, Asset and Telemetry Service on its own, for many kits. */
import { readStandalone } from '../config/standalone.ts';
import { createLog } from '../platform/log.ts';
import { aborted } from '../platform/time.ts';
import { pageOnDemand } from '../service/page-files.ts';
import { startStandalone } from '../service/standalone.ts';
import { nameOf, openStore } from '../service/store/open-store.ts';
import { exit, type Shell } from './shell.ts';
import { version } from './version.ts';

export async function service(file: string, shell: Shell): Promise<number> {
  const config = await readStandalone(file, shell.env['CREDENTIALS_DIRECTORY']);
  const log = createLog({ ...config.log, out: shell.out, readable: shell.out.isTTY === true });
  for (const warning of config.warnings) log.warn({ file }, warning);
  shell.onCrash((err) => log.fatal({ err }, 'the program contradicts itself and ends'));
  const opened = await openStore(config.database);
  const running = await startStandalone({
    ...config,
    ...opened,
    page: pageOnDemand(),
    version: version(),
    log: log.child({ part: 'service' }),
  });
  log.info(
    { url: running.url, broker: config.broker.url, database: nameOf(config.database) },
    'the service is running',
  );
  if ((await running.store.keys()).length === 0) {
    log.warn({}, 'there is no API key yet: nobody can ask; make one with "kit-connector service key add"');
  }
  try {
    await aborted(shell.signal);
  } finally {
    await running.stop();
  }
  log.info({}, 'the service has stopped');
  return exit.ok;
}
