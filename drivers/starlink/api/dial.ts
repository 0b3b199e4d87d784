/** Opens the TCP connection to the dish, through the interface of its link when told so. */
import type { Socket } from 'node:net';
import { connectTcp } from '../../../src/platform/linux/bound-tcp.ts';
import type { StarlinkOptions } from '../options.ts';

/** Throws `DeviceUnreachable`. */
export async function dial(
  options: StarlinkOptions,
  signal: AbortSignal,
  port = options.port,
): Promise<Socket> {
  const { host, link, bind, timeout_s } = options;
  const timeout_ms = timeout_s * 1_000;
  return connectTcp({ device: bind ? link : undefined, host_ip: host, port, timeout_ms, signal });
}
