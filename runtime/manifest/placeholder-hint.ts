import { WatchfireError } from "../base/errors.ts";

/** How a user fills placeholders: by the command's own `--values`, or, if it has no such option, by building the folder. */
export type PlaceholderRemedy = "option" | "build";

const remedies: Readonly<Record<PlaceholderRemedy, string>> = {
  option: "if it is a placeholder, name its values with --values FILE",
  build: "if it is a placeholder, `watchfire build --values FILE` fills it",
};

/**
 * Returns the fault of a manifest that was read without values. If its actual value contains `${`, the hint ends with the remedy.
 * Other faults are returned as they are.
 */
export function withPlaceholderHint(fault: WatchfireError, remedy: PlaceholderRemedy): WatchfireError {
  const { actual } = fault.detail;
  if (typeof actual !== "string" || !actual.includes("${")) return fault;
  return new WatchfireError(fault.code, { ...fault.detail, hint: `${fault.hint}; ${remedies[remedy]}` });
}
