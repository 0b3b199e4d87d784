/**
 * Keeps an upload on the link by which it was connected: where the routes change, TCP would send what is under way again by the new
 * link, which may forbid it.
 */
import type { Socket } from 'node:net';
import { bindConnected } from '../../platform/linux/bound-fd.ts';
import type { Routes } from '../../platform/linux/route-lookup.ts';
import { descriptorOf, unsentBytes } from '../../platform/linux/unsent-bytes.ts';

/** Without an acknowledgement for so long the connection has ended. Proxies and dead links give no other sign. */
const silence_max_ms = 30_000;

/** Returns its interface; null: not known. What it has not sent when it is closed is discarded. */
export async function stayOnLink(
  tcp: Socket | undefined,
  routes: Pick<Routes, 'find'> | undefined,
): Promise<string | null> {
  if (!tcp?.remoteAddress) return null;
  const unsent = await unsentBytes().catch(() => undefined);
  unsent?.neverLinger(descriptorOf(tcp) ?? -1, silence_max_ms);
  const to = { ip: tcp.remoteAddress, source_ip: tcp.localAddress };
  const way = (await routes?.find(to).catch(() => null))?.interface ?? null;
  if (way !== null) await bindConnected(descriptorOf(tcp) ?? -1, way);
  return way;
}
