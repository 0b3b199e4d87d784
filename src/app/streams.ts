/** Chooses the media server that the configuration names. */
import type { Config } from '../config/config.ts';
import type { Streams } from '../hub/assets/assets.ts';
import { go2rtc } from '../media/go2rtc.ts';
import { createMedia, type MediaOptions } from '../media/media.ts';
import { mediaMtx } from '../media/mediamtx.ts';
import { templateMedia } from '../media/template.ts';
import type { Log } from '../platform/log/log.ts';

const no_streams: Streams = { want: () => undefined, urlOf: () => null };

interface StreamsParts extends Omit<MediaOptions, 'server' | 'log'> {
  readonly log: Log;
}

/** Runs until the signal aborts. Without a media section no asset has a stream for viewers. */
export function openStreams(media: Config['media'], { log, ...parts }: StreamsParts): Streams {
  if (!media) return no_streams;
  if (media.server === 'template') return templateMedia(media.url, parts.onUrl);
  const server = media.server === 'go2rtc' ? go2rtc(media) : mediaMtx(media);
  return createMedia({ ...parts, log: log.child({ part: 'media' }), server });
}
