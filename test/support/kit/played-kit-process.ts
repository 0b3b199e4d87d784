/** The daemon as `kit-connector run` starts it, with the played drivers beside its own. Its argument is the configuration file. */
import { drivers } from '../../../drivers/index.ts';
import { runDaemon } from '../../../src/cli/daemon/daemon.ts';
import { readConfig } from '../../../src/config/config.ts';
import { createLog } from '../../../src/platform/log/log.ts';
import { playedDrivers } from './played-kit.ts';

const stop = new AbortController();
process.on('SIGTERM', () => stop.abort());

const shell = {
  env: process.env,
  out: process.stdout,
  err: process.stderr,
  signal: stop.signal,
  onHangup: () => undefined,
  onCrash: () => undefined,
};
const config = await readConfig(process.argv[2] ?? '', {
  drivers: [...drivers, ...playedDrivers.map((driver) => ({ name: driver.name, load: async () => driver }))],
  credentials_dir: undefined,
});
const log = createLog({ ...config.log, out: process.stdout, readable: false });
process.exit(await runDaemon({ config, log, onReady: () => undefined }, shell));
