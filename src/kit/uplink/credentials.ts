/** The credentials at the broker, which others renew on disk while the kit runs: certificates of an authority, tokens of a cloud. */
import type { BrokerOptions } from '../../mqtt/broker.ts';
import { authoritiesEnd, type Expiry, expiryOf } from '../../mqtt/credentials.ts';
import type { Problems } from './problems.ts';
import { utcDay } from '../../platform/time.ts';
import { texts } from './texts.ts';

/** A certificate is said to end so long ahead. Tokens live for hours, so only their end is worth a sentence. */
const warn_ahead_ms = { certificate: 14 * 86_400_000, token: 0 } as const;
/** A connection is made with the new ones so long before the old ones end. */
const renew_ahead_ms = 300_000;

export class Credentials {
  readonly #renew: (broker: BrokerOptions) => Promise<BrokerOptions>;
  /** That of the last connection. */
  #broker: BrokerOptions | undefined;
  readonly #problems: Pick<Problems, 'note' | 'clear'>;
  /** Unix time: what ends is written in it. */
  readonly #wall: () => number;
  #used: Expiry | undefined;
  /** Of the file that was read last: it is the same for years, and may hold hundreds. */
  #authorities: { readonly ca: string | undefined; readonly end_ms: number } = {
    ca: undefined,
    end_ms: Infinity,
  };

  constructor(
    renew: (broker: BrokerOptions) => Promise<BrokerOptions>,
    problems: Pick<Problems, 'note' | 'clear'>,
    wall: () => number = Date.now,
  ) {
    this.#renew = renew;
    this.#problems = problems;
    this.#wall = wall;
  }

  /** For the next connection. */
  async read(configured: BrokerOptions): Promise<BrokerOptions> {
    this.#broker = configured;
    const broker = await this.#renew(configured);
    this.#used = expiryOf(broker);
    this.#judge(this.#used);
    this.#judgeAuthorities(broker);
    return broker;
  }

  /** Those of the connection end soon, and there are others that last longer. */
  async isRenewalDue(): Promise<boolean> {
    if (this.#broker === undefined) return false;
    const broker = await this.#renew(this.#broker);
    const next = expiryOf(broker);
    this.#judge(next);
    this.#judgeAuthorities(broker);
    const { at_ms = Infinity } = this.#used ?? {};
    return at_ms - this.#wall() < renew_ahead_ms && (next?.at_ms ?? Infinity) > at_ms;
  }

  /** Once they have ended, the kit is offline, and so are all others that have the same file. */
  #judgeAuthorities({ ca }: BrokerOptions): void {
    if (this.#authorities.ca !== ca) this.#authorities = { ca, end_ms: authoritiesEnd(ca) };
    const { end_ms } = this.#authorities;
    if (end_ms - this.#wall() > warn_ahead_ms.certificate) return this.#problems.clear('authorities');
    const day = utcDay(end_ms);
    this.#problems.note('authorities', {
      sentence: texts.authorities_end(day),
      line: texts.credentials_end,
      facts: { ends: day, what: 'ca_file' },
    });
  }

  #judge(expiry: Expiry | undefined): void {
    const left_ms = expiry === undefined ? Infinity : expiry.at_ms - this.#wall();
    if (expiry === undefined || left_ms > warn_ahead_ms[expiry.what]) {
      this.#problems.clear('credentials');
      return;
    }
    const what = expiry.what === 'certificate' ? 'client certificate' : 'token';
    const day = utcDay(expiry.at_ms);
    this.#problems.note('credentials', {
      sentence: (left_ms > 0 ? texts.expires : texts.has_expired)(what, day),
      line: texts.credentials_end,
      facts: { ends: day, what },
    });
  }
}
