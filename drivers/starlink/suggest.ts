/** Looks for a Starlink dish at the address that every dish has. */
import type { Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { Suggestion } from '../../src/toolkit/driver/suggest.ts';
import { dial } from './api/dial.ts';
import { openDish } from './dish.ts';
import { openChannel } from './api/grpc.ts';
import { openWebChannel } from './api/grpc-web.ts';
import { type StarlinkOptions, starlinkOptions } from './options.ts';

const answer_s = 2.5;

export async function suggest(
  signal: AbortSignal,
  where: { readonly host?: string; readonly port?: number; readonly web_port?: number } = {},
): Promise<readonly Suggestion[]> {
  // By the routing table: which link leads there is what is looked for.
  const options = starlinkOptions.parse({ link: 'lo', bind: false, timeout_s: answer_s, ...where });
  const closing = new AbortController();
  const over = AbortSignal.any([signal, closing.signal]);
  try {
    const link = interfaceOf(
      (await byGrpc(options, over).catch(nothing)) ?? (await byGrpcWeb(options, over)),
    );
    if (link === undefined) return [];
    return [{ what: `Starlink dish behind ${link}`, options: { link }, complete: true }];
  } finally {
    closing.abort();
  }
}

const nothing = (): undefined => undefined;

/** Our address towards a dish that answers. */
type OwnAddress = string | undefined;

async function byGrpc(options: StarlinkOptions, signal: AbortSignal): Promise<OwnAddress> {
  const socket = await dial(options, signal);
  const { localAddress } = socket;
  await openDish(openChannel(socket, { timeout_ms: answer_s * 1_000, signal })).status();
  return localAddress;
}

/** Since June 2026 dishes have nothing else. */
async function byGrpcWeb(options: StarlinkOptions, signal: AbortSignal): Promise<OwnAddress> {
  let localAddress: OwnAddress;
  const connect = async (): Promise<Socket> => {
    const socket = await dial(options, signal, options.web_port);
    ({ localAddress } = socket);
    return socket;
  };
  await openDish(openWebChannel({ connect, timeout_ms: answer_s * 1_000, signal })).status();
  return localAddress;
}

function interfaceOf(address: string | undefined): string | undefined {
  return Object.entries(networkInterfaces()).find(([, all]) =>
    all?.some((each) => each.address === address),
  )?.[0];
}
