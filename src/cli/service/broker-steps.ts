/** What each kind of broker has to be told of a kit: lines to run there, or to add to a file. Pure. */

export const broker_kinds = ['mosquitto', 'rabbitmq', 'emqx'] as const;
export type BrokerKind = (typeof broker_kinds)[number];

interface NewKit {
  readonly kit_id: string;
  /** Undefined: it has a certificate. */
  readonly password: string | undefined;
  /** File of the authority that signs the certificates of kits. */
  readonly authority: string;
}

export function brokerSteps(kind: BrokerKind, kit: NewKit): readonly string[] {
  return steps[kind](kit);
}

const steps: Readonly<Record<BrokerKind, (kit: NewKit) => readonly string[]>> = {
  mosquitto: ({ kit_id, password, authority }) => [
    ...(password === undefined
      ? [
          '# mosquitto.conf, at the listener of the kits, once for all of them:',
          `cafile ${authority}`,
          'require_certificate true',
          'use_identity_as_username true',
        ]
      : [`mosquitto_passwd -b /etc/mosquitto/passwd ${kit_id} '${password}'`]),
    '# the ACL file, unless it has the patterns of /usr/share/kit-connector/broker/mosquitto.acl; then systemctl reload mosquitto',
    `user ${kit_id}`,
    `topic write k1/${kit_id}/up/#`,
    `topic read k1/${kit_id}/down/#`,
  ],
  // Queues of the MQTT plugin: rabbitmq.com/docs/mqtt, "Users and Authentication"; a refused subscription ends the connection
  // (rabbitmq/rabbitmq-server 12742), so the doctor may have one too. Topics have dots there.
  rabbitmq: ({ kit_id, password, authority }) => {
    const queues = `mqtt-subscription-(${kit_id}|doctor-)`;
    const rights = `'^${queues}' '^(${queues}|amq\\.topic$)' '^(${queues}|amq\\.topic$)'`;
    return [
      ...(password === undefined
        ? [
            '# rabbitmq.conf, once for all kits, with rabbitmq-plugins enable rabbitmq_auth_mechanism_ssl:',
            `ssl_options.cacertfile = ${authority}`,
            'ssl_options.verify = verify_peer',
            'ssl_options.fail_if_no_peer_cert = true',
            'ssl_cert_login_from = common_name',
            'mqtt.ssl_cert_login = true',
            `rabbitmqctl add_user ${kit_id} unused`,
            `rabbitmqctl clear_password ${kit_id}`,
          ]
        : [`rabbitmqctl add_user ${kit_id} '${password}'`]),
      `rabbitmqctl set_permissions ${kit_id} ${rights}`,
      `rabbitmqctl set_topic_permissions ${kit_id} amq.topic '^k1\\.${kit_id}\\.up\\.' '^k1\\.${kit_id}\\.down\\.'`,
    ];
  },
  // docs.emqx.com, "Manage User Data" and "Use ACL File".
  emqx: ({ kit_id, password, authority }) => [
    ...(password === undefined
      ? [
          '# emqx.conf, at the listener of the kits, once for all of them, with mqtt.peer_cert_as_username = cn:',
          `ssl_options { cacertfile = "${authority}", verify = verify_peer, fail_if_no_peer_cert = true }`,
        ]
      : [
          `curl -u KEY:SECRET -H 'Content-Type: application/json' -d '${JSON.stringify({ user_id: kit_id, password })}' http://localhost:18083/api/v5/authentication/password_based%3Abuilt_in_database/users`,
        ]),
    '# acl.conf, unless it has the rules of /usr/share/kit-connector/broker/emqx-acl.conf:',
    `{allow, {username, "${kit_id}"}, publish, ["k1/${kit_id}/up/#"]}.`,
    `{allow, {username, "${kit_id}"}, subscribe, ["k1/${kit_id}/down/#"]}.`,
  ],
};
