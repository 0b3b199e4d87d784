/** Reverse proxies in front of the service whose word on the address of a client counts. */
import { isIP } from 'node:net';
import { z } from 'zod';
import { isNetwork } from './network.ts';

const proxy = z
  .string()
  .refine(
    (text) => isProxy(text),
    'write the address of a proxy, such as 10.0.0.5, or the network of several, such as 10.1.0.0/24',
  );

/** The keys of the service, in the section of the daemon and in the file of its own. */
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
