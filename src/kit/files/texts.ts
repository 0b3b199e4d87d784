/** Sentences about files for the cloud that people read; tests refer to them by name. */
export const texts = {
  files_unavailable: 'files for the cloud cannot be kept',
  folder_failed: (dir: string, reason: string) => `${dir} cannot be used (${reason}); files are not kept`,
  file_not_kept: (name: string, reason: string) => `${name} not kept: ${reason}`,
  file_too_large: (bytes_max: number) =>
    `larger than the ${Math.floor(bytes_max / 1e6)} MB for files; raise files.bytes_max_mb`,
  file_empty: 'the file is empty',
  bundle_failed: (reason: string) => `the support bundle was not made: ${reason}`,
  disk_full: 'no free space for another file on the disk',
  dropped: {
    evicted: 'given up for newer files; raise files.bytes_max_mb',
    expired: 'older than files.age_max_days',
    lost: 'its content was missing or damaged at the kit',
    unwanted: 'deleted at the cloud',
  },
  file_added: 'file added for the cloud',
  file_dropped: 'file given up',
  file_sent: 'file uploaded',
  upload_failed: 'upload failed; retrying',
  upload_restored: 'uploads restored',
  url_refused: (url: string) => `the cloud named ${url}, which has no TLS; files are sent over https only`,
  file_cut: 'its content ends too early',
  no_progress: 'the server took none of it',
  no_http_answer: 'the server does not answer',
  no_answer: 'the cloud does not answer the request for an upload',
  http_status: (status: number, words: string) => `HTTP ${status} ${words}`.trim(),
  no_offset: (status: number) =>
    `the answer (HTTP ${status}) has no Upload-Offset; a proxy may remove or cache it`,
  moved: 'the link changed',
} as const;
