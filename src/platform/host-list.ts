/** Addresses that name several hosts, with commas between them, as those of PostgreSQL do: `postgres://user@one:5432,two:5432/kits`. */

const form = /^(?<scheme>[a-z]+:\/\/)(?<login>[^@/?]*@)?(?<hosts>[^/?@]*)(?<rest>[/?].*)?$/u;

/** Returns one address for each host; the address itself when it names one or cannot be read. */
export function addressesOf(url: string): readonly string[] {
  const { scheme = '', login = '', hosts = '', rest = '' } = form.exec(url)?.groups ?? {};
  if (!hosts.includes(',')) return [url];
  return hosts.split(',').map((host) => `${scheme}${login}${host}${rest}`);
}
