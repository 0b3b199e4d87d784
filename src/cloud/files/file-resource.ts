/** A file as clients read it. */
import type { FileResource } from '../api/file-resources.ts';
import { iso } from '../api/views.ts';
import type { StoredFile } from './file-store.ts';

/** What was deleted here is shown to those who had it in view as no longer to be had. */
export function fileResourceOf({
  kit_id,
  data,
  thumbnail,
  state,
  reason,
  ...file
}: StoredFile): FileResource {
  return {
    kit_id,
    ...data,
    ...(thumbnail !== null && { thumbnail }),
    state: state === 'deleted' ? 'dropped' : state,
    ...(reason !== null && { reason }),
    received_bytes: file.received,
    ordered: file.ordered_ms !== null,
    ...(state === 'stored' && file.stored_ms !== null && { stored_at: iso(file.stored_ms) }),
  };
}
