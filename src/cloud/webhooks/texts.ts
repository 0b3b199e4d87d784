/** Sentences on webhooks that people read. */

export const texts = {
  no_answer: (timeout_ms: number) => `no answer within ${timeout_ms / 1_000} s`,
  redirected: (status: number) => `redirected (status ${status}); redirects are not followed`,
  refused: (status: number) => `answered with status ${status}`,
  headers_too_large: (bytes_max: number) => `answered with more than ${bytes_max / 1_024} KiB of headers`,
  no_http: 'answered with something that is not HTTP; check the address',
  private_address: (host: string) =>
    `${host} has no address outside private networks; webhooks.allow names the allowed networks`,
  by_client: 'disabled by a client',
  key_revoked: 'the key of its registration was revoked; enable it with another key',
  key_expired: (time: string) => `the key of its registration expired at ${time}; enable it with another key`,
  queue_full: 'the queue of the webhook was full',
  gave_up: (attempts: number, reason: string) => `gave up after ${attempts} attempts: ${reason}`,
  gone: 'the receiver answered with status 410 (Gone)',
  failing: (hours: number) => `every delivery failed for ${hours} h`,
  log_disabled: 'webhook disabled; its events are not queued',
  log_failing: 'webhook delivery failed; retrying',
  log_restored: 'webhook deliveries restored',
  log_dead: 'webhook message not delivered; moved to the dead-letter list',
  log_queue_failed: 'webhook queue not available; retrying',
  too_many: (max: number) => `the limit of ${max} webhooks is reached; delete one`,
  no_webhook: (webhook_id: string) => `webhook ${webhook_id} not found`,
  foreign_kits: 'names kits that the key has no access to',
  rejected: 'the webhook was rejected',
  switched_off: 'webhooks are disabled in the configuration of this service',
  cursor_of_page: 'cursor: send the `next_cursor` of the page before',
} as const;
