/** What the documents of a cloud say about the configured connection to it. Pure. */
import type { BrokerConfig } from '../../kit/config/broker.ts';
import { brokerPlace, isTls, isWebSocket } from '../../platform/broker-address.ts';
import { type BrokerProfile, profileOf } from '../../platform/broker-profiles.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { texts } from './texts.ts';

const what = 'broker profile';

/** No finding where the broker is none of a cloud that is known. */
export function checkProfile(broker: BrokerConfig): readonly Finding[] {
  const url = new URL(broker.url);
  const profile = profileOf(brokerPlace(url).host);
  return profile ? [addressFault(url, profile) ?? loginFault(broker, profile) ?? fits(profile)] : [];
}

function addressFault(url: URL, { name, ports, alpn_port }: BrokerProfile): Finding | undefined {
  const { host, port } = brokerPlace(url);
  const remedy = texts.write_profile_url(host, ports.mqtts, ports.wss);
  if (!isTls(url)) return fail(what, texts.profile_tls(name), remedy);
  const served = isWebSocket(url) ? [ports.wss] : [ports.mqtts, alpn_port];
  return served.includes(port) ? undefined : fail(what, texts.profile_port(name, port), remedy);
}

/** A custom authorizer of AWS takes a password in place of a certificate. */
function loginFault(broker: BrokerConfig, { name, login }: BrokerProfile): Finding | undefined {
  if (broker.password !== undefined || broker.secret_files?.password !== undefined) return undefined;
  if (login === 'password') return warn(what, texts.profile_password(name), texts.set_password);
  if (broker.cert !== undefined) return undefined;
  return warn(what, texts.profile_certificate(name), texts.set_certificate);
}

function fits({ name, publishes_per_s }: BrokerProfile): Finding {
  return ok(
    what,
    publishes_per_s === undefined ? texts.profile_fits(name) : texts.profile_rate(name, publishes_per_s),
  );
}
