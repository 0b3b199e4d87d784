/** The files with the secrets of the broker on this machine, for remedies. Pure. */
import { join } from 'node:path';
import { z } from 'zod';
import { service_name } from './service-user.ts';
import { credential_store, type Store } from './stored-secrets.ts';
import { texts } from './texts.ts';

export interface Places {
  readonly password: string;
  readonly ca: string;
  /** Of the kit itself; undefined: it logs in without, as far as the configuration shows. */
  readonly certificate?: string | undefined;
  /** The service has secrets that this user cannot read: a login that fails without them may succeed with them. */
  readonly isBlind: boolean;
}

export const look_as_root = texts.run_with_sudo;

/** The configuration keys, for when the files are unknown. */
export const keys_only: Places = {
  password: 'broker.password_file',
  ca: 'broker.ca_file',
  isBlind: false,
};

const named = z.looseObject({
  broker: z.looseObject({
    password_file: z.string().optional(),
    ca_file: z.string().optional(),
    cert_file: z.string().optional(),
  }),
});

/** `file_value`: the configuration file as parsed. */
export function placesOf(file_value: unknown, store: Store, unit = service_name): Places {
  const broker = named.safeParse(file_value).data?.broker;
  const hasStore = store !== 'none';
  const stored = (name: string): string => join(credential_store, `${unit}.${name}`);
  return {
    password: broker?.password_file ?? (hasStore ? stored('mqtt-password') : keys_only.password),
    ca: broker?.ca_file ?? (hasStore ? texts.ca_place(stored('mqtt-ca')) : keys_only.ca),
    certificate: broker?.cert_file,
    isBlind: store === 'closed',
  };
}
