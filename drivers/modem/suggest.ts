/** Looks for modems: ModemManager lists them. */
import type { Suggestion } from '../../src/toolkit/driver/suggest.ts';
import { openBus } from '../../src/toolkit/device/dbus/bus.ts';
import { readModems } from './dbus/manager.ts';
import { modemOptions } from './options.ts';

const answer_ms = 2_500;

export async function suggest(
  signal: AbortSignal,
  { address = modemOptions.parse({}).bus } = {},
): Promise<readonly Suggestion[]> {
  const closing = new AbortController();
  const over = AbortSignal.any([signal, closing.signal]);
  try {
    const bus = await openBus({ address, timeout_ms: answer_ms, signal: over, onSignal: () => undefined });
    const modems = await readModems(bus);
    if (modems.length === 0) return [];
    const names = modems.map(
      ({ modem }) => [modem.Manufacturer, modem.Model].filter(Boolean).join(' ') || 'a modem',
    );
    return [{ what: `ModemManager has ${names.join(', ')}`, options: {}, complete: true }];
  } finally {
    closing.abort();
  }
}
