/** A map file (PMTiles) that a person chose on this device: kept by the browser, sent to nobody. */
const store = 'files';
const key = 'map';
const magic = 'PMTiles';

/** Rejects with the reason where it is no such file, or has no room. */
export async function keepMap(file: File | undefined): Promise<void> {
  if (file && (await file.slice(0, magic.length).text()) !== magic) throw new Error('PMTiles');
  await inStore('readwrite', (files) => (file ? files.put(file, key) : files.delete(key)));
}

export async function keptMap(): Promise<File | undefined> {
  const kept = await inStore('readonly', (files) => files.get(key));
  return kept instanceof File ? kept : undefined;
}

async function inStore(
  mode: IDBTransactionMode,
  act: (files: IDBObjectStore) => IDBRequest,
): Promise<unknown> {
  const open = indexedDB.open('kit-console', 1);
  open.onupgradeneeded = () => void open.result.createObjectStore(store);
  const database: unknown = await done(open);
  if (!(database instanceof IDBDatabase)) return undefined;
  try {
    return await done(act(database.transaction(store, mode).objectStore(store)));
  } finally {
    database.close();
  }
}

async function done(request: IDBRequest): Promise<unknown> {
  const { promise, resolve, reject }: PromiseWithResolvers<unknown> = Promise.withResolvers();
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error ?? new Error('IndexedDB'));
  return promise;
}
