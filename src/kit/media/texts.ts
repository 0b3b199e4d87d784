/** Sentences about media servers that people read; tests refer to them by name. */
import type { DataCap } from '../../contract/feeds.ts';

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
  no_recording: 'the media server has no recording of this time',
  clip_too_large: (bytes_max: number) =>
    `the clip is larger than ${Math.floor(bytes_max / 1e6)} MB; order a shorter one`,
  playback_refused_login:
    'the playback server refused the login; give the user of the media section the permission for playback',
  playback_failed: (status: number) => `the playback server answered ${status}`,
  no_reason: 'without a reason',
  http_status: (status: number, error: string) => `HTTP ${status} ${error}`.trim(),
  codec: (words: string) =>
    `the viewer cannot play the codec of this camera (${words}); set its sub-stream to H.264`,
  no_picture: (words: string) => `the camera gives the media server no stream${inBrackets(words)}`,
  offer_refused: (status: number, words: string) => `the media server answered ${status}${inBrackets(words)}`,
  viewer_login:
    'the media server wants a login of viewers, who have none; allow everyone to read its streams',
  redirected: (to: string) =>
    `the media server redirects viewers${inBrackets(to)}; set that address in media`,
  no_asset: 'the kit has no such asset',
  no_video: 'the asset has no video',
  no_media_server: 'the kit has no media server; set media in its configuration',
  reconnected: 'the kit has just reconnected; try again',
  too_many_viewers: (viewers_max: number) => `the kit has ${viewers_max} viewers already`,
  link_forbids: (link: string) => `the kit sends no video over its ${link} link (video in its configuration)`,
  cap_used: ({ name, used_gb, cap_gb, last_day }: DataCap) =>
    `the data cap of the ${name} link is used up (${used_gb} of ${cap_gb} GB until ${last_day}): no video over it; raise its cap_gb, or set video to free`,
  cannot_count: (server: string) =>
    `the kit sends video over its metered link only within a limit, and ${server} cannot end a viewer; use MediaMTX, or set video.metered to free`,
  used_up: (what: string) =>
    `the video of today on metered links is used up (${what}); more after 00:00 UTC, or raise it in video of the kit's configuration`,
  viewer_ended: 'video viewer ended',
  viewers_unknown: 'media server does not list its viewers; their use is not counted',
  viewer_not_ended: 'ending a video viewer failed',
  state_not_written: 'video usage could not be written',
  answer_too_large: (bytes_max: number) => `the answer is larger than ${bytes_max} bytes`,
} as const;

function inBrackets(words: string): string {
  return words === '' ? '' : ` (${words})`;
}
