/** What happens to assets, for those who observe them: the activity log and the tasks that wait for an asset. */

export interface ObservedAsset {
  readonly id: string;
  readonly key: string;
  readonly name: string;
  readonly type: string;
  /** Configured name of the driver instance. */
  readonly driver: string;
}

export type AssetActivity =
  /** The kit has it from now on: its driver announced it, or an earlier run did whose buffer file opened late. */
  | { readonly kind: 'added'; readonly asset: ObservedAsset }
  /** Its driver announced it; its facts or commands may be others. */
  | { readonly kind: 'announced'; readonly asset: ObservedAsset }
  /** `is_first`: it was not online before in this run. */
  | { readonly kind: 'online'; readonly asset: ObservedAsset; readonly is_first: boolean }
  | { readonly kind: 'offline'; readonly asset: ObservedAsset; readonly reason: string | null }
  | { readonly kind: 'removed'; readonly asset: ObservedAsset; readonly reason: string };

/** Called once for each activity, in its order. Must not throw: the asset would be left half way. */
export type ObserveAssets = (activity: AssetActivity) => void;
