/** The daemon as `kit-connector run` starts it, with the drivers of tests beside its own. Its argument is the configuration file. */
import { drivers } from '../../../drivers/index.ts';
import { hangupsOf } from '../../../src/cli/daemon/reload.ts';
import { runDaemon } from '../../../src/cli/daemon/daemon.ts';
import { type Config, readConfig } from '../../../src/kit/config/config.ts';
import { createLog } from '../../../src/platform/log/log.ts';
import { playedDrivers } from './played-kit.ts';
import { rehearsal } from './rehearsal.ts';

const stop = new AbortController();
process.on('SIGTERM', () => stop.abort());

const shell = {
  env: process.env,
  out: process.stdout,
  err: process.stderr,
  signal: stop.signal,
  onHangup: (listener: () => void) => void process.on('SIGHUP', listener),
  onCrash: () => undefined,
};
const hangups = hangupsOf(shell);
const readAgain = async (): Promise<Config> =>
  readConfig(process.argv[2] ?? '', {
    drivers: [
      ...drivers,
      ...[rehearsal, ...playedDrivers].map((driver) => ({ name: driver.name, load: async () => driver })),
    ],
    credentials_dir: undefined,
  });
const config = await readAgain();
const log = createLog({ ...config.log, out: process.stdout, readable: false });
const reloads = { ...hangups, readAgain };
process.exit(await runDaemon({ config, log, onReady: () => undefined, reloads }, shell));
