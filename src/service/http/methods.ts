/** Finds the methods of a path, for 405 in place of 404 (RFC 9110, section 15.5.6). */

export interface KnownRoute {
  readonly method: string;
  /** With `{name}` for parameters. */
  readonly path: string;
}

/** Returns the methods that a path supports; none when it does not exist. */
export function methodFinder(routes: readonly KnownRoute[]): (path: string) => readonly string[] {
  const known = routes.map(({ method, path }) => ({
    method: method.toUpperCase(),
    form: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/gu, '[^/]+')}$`, 'u'),
  }));
  return (path) => {
    const methods = known.filter(({ form }) => form.test(path)).map(({ method }) => method);
    return methods.includes('GET') ? [...methods, 'HEAD'] : methods;
  };
}
