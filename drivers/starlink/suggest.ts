/** Looks for a Starlink dish at the address that every dish has. */
import { networkInterfaces } from 'node:os';
import type { Suggestion } from '../../src/driver/suggest.ts';
import { dial } from './api/dial.ts';
import { openDish } from './dish.ts';
import { openChannel } from './api/grpc.ts';
import { starlinkOptions } from './options.ts';

const answer_s = 2.5;

export async function suggest(
  signal: AbortSignal,
  where: { readonly host?: string; readonly port?: number } = {},
): Promise<readonly Suggestion[]> {
  // By the routing table: which link leads there is what is looked for.
  const options = starlinkOptions.parse({ link: 'lo', bind: false, timeout_s: answer_s, ...where });
  const closing = new AbortController();
  const over = AbortSignal.any([signal, closing.signal]);
  try {
    const socket = await dial(options, over);
    const { localAddress } = socket;
    await openDish(openChannel(socket, { timeout_ms: answer_s * 1_000, signal: over })).status();
    const link = interfaceOf(localAddress);
    if (link === undefined) return [];
    return [{ what: `Starlink dish behind ${link}`, options: { link }, complete: true }];
  } finally {
    closing.abort();
  }
}

function interfaceOf(address: string | undefined): string | undefined {
  return Object.entries(networkInterfaces()).find(([, all]) =>
    all?.some((each) => each.address === address),
  )?.[0];
}
