/** Sentences of the outbox that people read; tests refer to them by name. */
export const texts = {
  // The disk
  disk_failed: 'disk write failed; buffering in memory',
  disk_full: 'disk full; limiting the buffer to its present size',
  disk_recovered: 'disk writes resumed',
  disk_timed_out: 'disk did not answer in time',
  commit_slow: (seconds: number) => `disk took ${seconds} s for a commit`,
  commit_unanswered: (seconds: number) => `disk has not answered a commit for ${seconds} s`,
  not_written: 'disk did not store the last messages; they are lost',
  reserve_used: (dir: string, wanted_mb: number) =>
    `disk of ${dir} was full; the buffer does not grow until ${wanted_mb} MB are free`,
  space_short: (dir: string, free_mb: number, min_mb: number) =>
    `${dir}: ${free_mb} MB free, below outbox.free_disk_min_mb ${min_mb}; the buffer does not grow`,
  sqlite_full: 'disk full, free some space',
  sqlite_no_room: 'disk full or failing, free some space',
  sqlite_corrupt: 'buffer file is damaged',
  sqlite_not_a_database: 'buffer file is not a database',
  sqlite_io_error: 'disk I/O error',
  sqlite_read_only: 'disk is read-only',
  not_the_owner: (dir: string, uid: number) =>
    `; user ${uid} may not write ${dir}, run "chown ${uid} ${dir}"`,
  forbidden_by_policy: (dir: string) =>
    `; ${dir} belongs to this user, so SELinux or AppArmor forbids it: see ausearch -m avc or dmesg, and add :Z to a volume of a container`,
  sqlite_cannot_open: 'cannot open the buffer file',
  sqlite_cannot_lock: 'cannot lock the buffer file',
  sqlite_busy: 'buffer file is locked by another program',
  system_error: (cause: string) => `disk error (${cause})`,

  // The buffer file and its thread
  file_gone: 'buffer file was deleted or replaced while in use',
  file_replaced: 'buffer file was deleted or replaced; rescued its messages into a new one',
  file_damaged: 'buffer file was damaged; moved it aside and salvaged readable messages',
  file_too_new: 'buffer file needs a later release; moved it aside and began a new one',
  file_other_kit: 'buffer file belongs to another kit; moved it aside and began a new one',
  file_copied: 'buffer file was used on another machine; beginning a distant epoch',
  file_opened_late: 'buffer file opened after a failed start; resuming its tasks',
  folder_missing: (dir: string) => `${dir} does not exist; create the folder of the buffer file`,
  other_kit: (kit_id: string) => `file contains messages of kit ${kit_id}`,
  schema_too_new: (version: number, min_reader: number, own: number) =>
    `file version ${version} requires a reader of version ${min_reader}; this release has version ${own}`,
  closed: 'buffer is closed',
  thread_ended: (cause: string) => `buffer thread ended (${cause})`,
  lane_unknown: (lane: string) => `unknown lane: ${lane}`,

  // Epochs
  epoch_began: 'new epoch began',
  epoch_not_begun: 'epoch not begun; keeping the current one',
  epoch_not_stored: 'epoch not stored; trying again',
  epoch_claimed: 'cloud acknowledged numbers this kit has not used; beginning a new epoch',

  // Messages
  dropping: {
    limit: 'buffer at its limit; dropping the least important messages',
    disk: 'disk full; dropping the least important messages',
    age: 'messages older than outbox.age_max_days; dropping them',
    memory: 'memory for unwritten messages full; dropping messages',
  },
  dropped: {
    limit: 'messages dropped at the limit of the buffer',
    disk: 'messages dropped on a full disk',
    age: 'messages dropped for their age',
    memory: 'messages dropped from full memory',
  },
  too_large: 'message exceeded the size limit; dropped',
  ack_ignored: 'cloud acknowledged messages that this kit has not sent; ignoring them',
  message_quarantined: 'broker refused a message; quarantined',
  batch_refused: 'broker refused a batch; sending smaller ones',
  kind_refused: 'broker refused messages of this kind; keeping them and probing',
  kind_accepted: 'broker accepted messages of this kind again; sending resumed',
} as const;
