/** The environment's variables; an empty one counts as unset. The only place that asks the process for them. */
export const readVariables = (variables: NodeJS.ProcessEnv = process.env): Readonly<NodeJS.ProcessEnv> =>
  Object.freeze(Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== "")));
