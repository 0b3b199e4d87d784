/** Sentences of the uplink that people read; tests refer to them by name. */
export const texts = {
  unknown_topic: 'message on an unknown topic ignored',
  retained_whep: 'retained viewer request ignored',
  retained_cancel: 'retained cancel ignored',
  too_many_dispatches: 'too many dispatches wait for the disk; leaving more at the broker',
  message_invalid: 'cloud message did not match the contract; ignored',
  message_failed: 'cloud message not processed',
  message_too_large: 'cloud message too large; discarded',
  subscription_refused: 'broker refused a subscription; continuing without it',
  presence_refused: 'broker refused the presence of the kit; continuing without it',
  mqtt5_refused: 'broker did not accept MQTT 5; trying 3.1.1',
  still_offline: 'broker still not connected',
  broker_unreachable: 'broker unreachable; buffering',
  broker_refused: 'broker refused the connection; buffering',
  route_changed: 'route to the broker changed; reconnecting',
  routes_unknown: 'routing changes not available; a changed route is noticed by silence only',
  serves_no_more:
    'the broker, or the proxy before it, takes the connection and does not answer: it is starting, overloaded or blocked by an alarm of its own (RabbitMQ: memory, disk); read its log',
  broker_lost: 'broker connection lost; buffering',
  large_packets_lost: 'large packets to or from the broker are lost on the way',
  small_packets: 'large packets of the broker connection are lost; sending small ones',
  mtu_changed: 'the MTU of the link changed; reconnecting',
  set_mtu: (link: string | null, host: string) =>
    `broker connection loses large packets${link === null ? '' : ` over ${link}`}, so it has small ones only: set the MTU of ${link ?? 'the link'} to what the path to the broker carries (ping -M do -s BYTES ${host} finds it)`,
  epoch_unsure: 'disk unreadable, its last epoch unknown; connecting after a wait',
  receive_maximum_0: 'broker announced Receive Maximum 0; sending one message at a time',
  no_retain: {
    sentence:
      'broker does not keep retained messages: the kit repeats what it would keep there every 15 minutes, and at down/sync; allow retained messages',
    line: 'broker does not store retained messages; publishing without retain',
  },
  retain_unsure: {
    sentence:
      'connections to the broker ended at retained messages: the kit publishes without retain until one holds, and tries again then',
    line: 'connections ended at retained messages; publishing without retain until one holds',
  },
  qos_0_only: 'broker supports QoS 0 only; buffering',
  rate_limited: (messages: number) =>
    `broker takes no more messages a second, so ${messages} are sent at most, live ones together once a second; raise its limit, or set uplink.messages_per_s_max`,
  rate_learnt: 'broker limits messages a second; sending fewer',
  acknowledgements_withheld:
    'the broker answers and leaves messages unacknowledged: more were sent than it takes',
  credentials_end: 'credentials at the broker end soon; renew them',
  credentials_renewed: 'credentials at the broker were renewed; reconnecting',
  expires: (what: string, day: string) =>
    `the ${what} for the broker ends on ${day}; renew it in its file, it is used from then on`,
  has_expired: (what: string, day: string) =>
    `the ${what} for the broker ended on ${day}; renew it in its file, it is used at the next attempt`,
  authorities_end: (day: string) =>
    `the authority in the CA file of the broker ends on ${day}, and the kit trusts the broker no longer then; install the new one in that file, it is used from then on`,
  other_broker: 'using another broker',
  first_broker_away: 'first broker did not work; using another one',
  uses_other_broker: (first: string, words: string, used: string) =>
    `broker ${first} did not work (${words}), so the kit uses ${used} and tries the first again every 10 minutes; repair it`,
  broker_moved: (from: string, to: string) =>
    `broker ${from} says that it moved for good, so the kit uses ${to}; set broker.url to it`,
  redirect_refused: (from: string, named: string) =>
    `broker ${from} sends the kit on to ${named}, which is not in its domain; add the host to broker.redirect_to, or correct broker.url`,
  redirected_in_circles: (from: string, named: string) =>
    `broker ${from} sends the kit on to ${named}, where it was sent away before or too many times; correct the brokers`,
  redirect_not_followed: 'broker named another server; not following',
  back_to_first: 'returning to the first broker',
  not_stored: 'broker accepted messages that the cloud never stored',
  another_client: 'another client used this kit_id; reconnecting',
  short_connections: 'broker ended several connections; another client may use this kit_id',
} as const;
