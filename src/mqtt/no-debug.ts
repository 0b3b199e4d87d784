/**
 * MQTT.js describes each step of each packet to the package `debug`. Switched off, that still makes an array of arguments for each
 * call: 4.7 kB of the 18.5 kB that a message allocates on its way to the broker. Here the library gets a function without
 * arguments, unless `DEBUG` asks for its packets. This has to be loaded before the library; the bundle has no `debug` at all.
 */
import { createRequire } from 'node:module';

const requireHere = createRequire(import.meta.url);
const requireThere = createRequire(requireHere.resolve('mqtt-packet'));
const file = requireThere.resolve('debug');
const createDebug: unknown = requireThere(file);
const loaded = requireThere.cache[file];
const silent = (): void => undefined;
if (loaded && !isAskedFor(createDebug)) loaded.exports = () => silent;

function isAskedFor(debug: unknown): boolean {
  if (typeof debug !== 'function' || !('enabled' in debug) || typeof debug.enabled !== 'function')
    return true;
  const is_enabled: unknown = Reflect.apply(debug.enabled, debug, ['mqtt-packet:parser']);
  return is_enabled === true;
}
