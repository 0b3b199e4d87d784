/** Events about the state of an asset or a link, which other tables hold. */

export function isAboutState(feed: string): boolean {
  return feed === 'asset_status' || feed === 'link_status';
}
