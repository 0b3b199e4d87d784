/** Sentences about the connection to the broker that people read; those of reason codes stand in codes.ts and those of errors in faults.ts; tests refer to them by name. */
export const texts = {
  // Connecting
  no_answer: 'the broker accepted the connection and did not answer',
  no_connection: 'no connection within the time limit',
  closed_early: 'the broker closed the connection before it answered',
  attempt_aborted: 'the attempt was aborted',

  // Sessions
  closed_by_broker: 'the broker closed the connection',
  ended_by_broker: (reason: string) => `the broker ended the connection: ${reason}`,
  session_ended: 'the connection to the broker has ended',
  request_unanswered: (what: string) => `the broker accepted the connection and did not answer the ${what}`,
  acknowledges_too_few: 'the broker left too many messages unacknowledged',
  partly_answered: 'the broker acknowledged only some filters of the subscription',
  ping_unanswered: (seconds: string) => `no answer to a ping for ${seconds} s`,

  // Packets
  packet_too_large: (type: number, bytes: number) =>
    `the broker sent a packet of type ${type} with ${bytes} bytes`,
  packet_cut: (type: number) => `the broker sent a truncated packet of type ${type}`,
  wrong_answer: (cmd: string) => `the broker answered a message with ${cmd.toUpperCase()}`,
  topic_cut: 'the broker sent a message that ends within its topic or packet id',
  topic_alias: 'the broker sent a message with a topic alias, which was not agreed on',
  not_mqtt: (first: string) => `the broker sent data that is not an MQTT packet (first byte 0x${first})`,
  length_unreadable: 'the broker sent a packet with an invalid length',
} as const;
