/** Packages that send requests through Node's sockets, or through a browser's `fetch`, neither of which a handler has. */
const httpClient =
  /^(?:axios|cross-fetch|got|isomorphic-fetch|ky|needle|node-fetch|request|superagent|undici|@slack\/(?:web-api|webhook))$/;

/** Returns what to do about a package that is not installed. */
export const packageHint = (name: string): string =>
  httpClient.test(name)
    ? "use `ctx.fetch`, and name the host under `egress` in the manifest: this package would not work in a handler"
    : `install it in the folder's project: npm install --save-dev ${name}`;

/** Returns the package of an import that is not a path: `@a/b` of `@a/b/c`. `undefined` for a path, or a name with a scheme. */
export const packageOf = (specifier: string): string | undefined =>
  /^(?:@[^/:]+\/)?[^./:][^/:]*(?=\/|$)/.exec(specifier)?.[0];
