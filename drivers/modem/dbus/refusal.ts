/** What an error of ModemManager means for the next question. Pure. */
import type { Reply } from '../../../src/device/dbus/bus.ts';

/**
 * `forbidden`: a right is missing; `unsupported`: this modem will never answer it; `silent`: the modem did not answer
 * ModemManager; `later`: anything else, as a state in which the modem cannot answer.
 */
export type Refusal = 'forbidden' | 'unsupported' | 'silent' | 'later';

/** ModemManager passes on the errors of libqmi and libmbim, whose names are their own. */
const kinds: readonly (readonly [Refusal, RegExp])[] = [
  ['forbidden', /\.(?:Unauthorized|AccessDenied|NotAuthorized)$/u],
  ['unsupported', /\.(?:Unsupported|NotSupported|UnknownMethod|UnknownInterface)$/u],
  ['silent', /\.Serial\.|\.(?:\w*Timeout|NoReply)$/u],
];

export function refusalOf({ error = '' }: Extract<Reply, { ok: false }>): Refusal {
  return kinds.find(([, names]) => names.test(error))?.[0] ?? 'later';
}
