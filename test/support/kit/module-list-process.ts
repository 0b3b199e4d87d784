/** Loaded with --import: writes the address of every module that the process loads into the file that LOADED_MODULES names. */
import { appendFileSync } from 'node:fs';
import { registerHooks } from 'node:module';

const file = process.env['LOADED_MODULES'];

registerHooks({
  load(url, context, nextLoad) {
    if (file) appendFileSync(file, `${url}\n`);
    return nextLoad(url, context);
  },
});
