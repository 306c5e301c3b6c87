/** Variables that name a tool from outside of npm. Without it some tests are skipped. */
export type Tool = "KUBEBUILDER_ASSETS" | "NATS_SERVER";

/**
 * Returns the path in a variable, or `undefined` if it is not set; the tests that need the tool are then skipped. With `CI=true`
 * a missing tool is an error, unless `TESTS_WITHOUT` lists the variable, so that a job states which tests it skips.
 * @throws Error with the variable to set
 */
export function toolOf(env: Readonly<Record<string, string | undefined>>, tool: Tool): string | undefined {
  const path = env[tool];
  if (path) return path;
  const isLeftOut = (env.TESTS_WITHOUT ?? "").split(/[\s,]+/).includes(tool);
  if (env.CI !== "true" || isLeftOut) return undefined;
  throw new Error(
    `CI=true, and ${tool} is not set: set it, or TESTS_WITHOUT=${tool} to leave the tests out that need it`,
  );
}
