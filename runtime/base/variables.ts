/** Returns the environment's variables. An empty one counts as unset. The only code that reads them from the process. */
export const readVariables = (variables: NodeJS.ProcessEnv = process.env): Readonly<NodeJS.ProcessEnv> =>
  Object.freeze(Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== "")));
