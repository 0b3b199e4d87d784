/** Assets as a service has them that is not the kit's own: their video is found at the service, which has the way to the kit. */
import type { StoredAsset } from '../stored/stored.ts';
import type { Store } from '../store/sql-store.ts';

export function relayed(store: Store): Store {
  const at = (kit_id: string, asset: StoredAsset): StoredAsset =>
    asset.whep_url === null ? asset : { ...asset, whep_url: `/api/kits/${kit_id}/assets/${asset.id}/whep` };
  const reads: Pick<Store, 'asset' | 'assets'> = {
    assets: async (kit_id) => (await store.assets(kit_id)).map((asset) => at(kit_id, asset)),
    async asset(kit_id, asset_id) {
      const asset = await store.asset(kit_id, asset_id);
      return asset && at(kit_id, asset);
    },
  };
  // The store of a thread has no methods of its own.
  return new Proxy(store, {
    get: (_, name): unknown => Reflect.get(Object.hasOwn(reads, name) ? reads : store, name),
  });
}
