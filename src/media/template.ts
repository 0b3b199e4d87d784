/** Streams whose media server is set up by hand: the URL is known from the name alone. */
import type { Media } from './media.ts';
import { streamName } from './name.ts';

/** Stands for the name of the stream. */
export const name_placeholder = '{name}';

export function templateMedia(url: string, onUrl: (asset_key: string) => void): Media {
  const wanted = new Set<string>();
  return {
    want(asset_key, rtsp_url) {
      if (wanted.has(asset_key) === (rtsp_url !== null)) return;
      if (rtsp_url === null) wanted.delete(asset_key);
      else wanted.add(asset_key);
      onUrl(asset_key);
    },
    urlOf: (asset_key) =>
      wanted.has(asset_key) ? url.replaceAll(name_placeholder, streamName(asset_key)) : null,
  };
}
