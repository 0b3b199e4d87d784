/** Sentences about media servers that people read; tests refer to them by name. */
export const texts = {
  not_rtsp: 'stream address is not an rtsp:// URL; no video',
  stream_rejected: (server: string) => `${server} rejected the camera stream; no video`,
  api_restored: (server: string) => `${server} API connection restored`,
  api_unreachable: (server: string) => `${server} API unreachable; retrying, check media.api_url`,
  port_closed: (port: number, reason: string) =>
    `its RTSP port ${port} takes no connection (${reason}); switch RTSP on at the camera, or correct rtsp_port`,
  no_answer: 'no answer',
  server_silent: (server: string, reason: string) =>
    `${server} does not answer (${reason}); check that it runs, and media.api_url`,
  api_refused_login: (status: number) =>
    `the API refused the login (HTTP ${status}); check username and password in the media section`,
  address_rejected: 'it rejected the stream address',
  no_reason: 'without a reason',
  http_status: (status: number, error: string) => `HTTP ${status} ${error}`.trim(),
  answer_too_large: (bytes_max: number) => `the answer is larger than ${bytes_max} bytes`,
} as const;
