/** Variables that name a tool from outside of npm, without which some tests are skipped. */
export type Tool = "KUBEBUILDER_ASSETS" | "NATS_SERVER";

/**
 * The path that a variable names, or undefined where it names none: then the tests that need it are skipped. With `CI=true` that
 * is an error, unless `TESTS_WITHOUT` lists the variable: a job says which tests it leaves out.
 * @throws Error with what to set
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
