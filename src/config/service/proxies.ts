/** Reverse proxies in front of the service that are trusted to report the address of a client. */
import { isIP } from 'node:net';
import { z } from 'zod';
import { isNetwork } from './network.ts';

const proxy = z
  .string()
  .refine(
    (text) => isProxy(text),
    'write the address of a proxy, such as 10.0.0.5, or the network of several, such as 10.1.0.0/24',
  );

/** Keys of the section `service` of the daemon, and of the file of a separate service. */
export const proxyKeys = {
  trusted_proxies: z
    .array(proxy)
    .max(64)
    .default([])
    .describe(
      'addresses or networks of the reverse proxies in front; limits for each address then hold for their clients, and of others the header is ignored',
    ),
  forwarded_header: z
    .enum(['x-forwarded-for', 'forwarded'])
    .default('x-forwarded-for')
    .describe(
      'header in which the trusted proxies name the address of the client; they must set or extend it',
    ),
};

/** All addresses at once would make every client a proxy, which chooses its own address. */
function isProxy(text: string): boolean {
  return isIP(text) !== 0 || isNetwork(text, 1);
}
