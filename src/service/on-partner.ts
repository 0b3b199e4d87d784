/** How the service reports changes of partner assets that its own clients made. */
import type { StoredFeed } from './store/store.ts';

/** `message`: a fix that was pushed; left out: the asset was registered, changed or removed. */
export type OnPartner = (changed: {
  readonly kit_id: string;
  readonly asset_id: string;
  readonly message?: StoredFeed;
}) => void;
