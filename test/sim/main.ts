/** `npm run sim`: plays stories until the time is over, or one of them again. */
import './world/globals.ts';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', multiple: true },
    minutes: { type: 'string' },
    stories: { type: 'string' },
    from: { type: 'string' },
    like: { type: 'string' },
    only: { type: 'string' },
    trace: { type: 'boolean', default: false },
    shrink: { type: 'boolean', default: false },
    going: { type: 'boolean', default: false },
    hashes: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const { runCli } = await import('./cli.ts');
process.exitCode = await runCli({ ...values, write: (text) => void process.stdout.write(`${text}\n`) });
