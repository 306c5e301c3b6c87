import { styleText } from "node:util";
import { table } from "./table.ts";

/** One row of the banner's table. */
interface BannerFunction {
  readonly name: string;
  /** One line each, such as `v1/ConfigMap in team-a`. */
  readonly triggers: readonly string[];
  readonly handler: string;
  readonly limits: string;
}

export interface Banner {
  readonly version: string;
  /** Milliseconds from the start of the process; `undefined` if it is not ready yet. */
  readonly readyMs: number | undefined;
  readonly cluster: string;
  readonly functions: readonly BannerFunction[];
  /** Text shown instead of an empty table. */
  readonly empty: string;
  /** Label and what to type or open. */
  readonly hints: readonly (readonly [label: string, text: string])[];
}

/** Returns what `watchfire dev` prints once it is ready, or has waited long enough. */
export function renderBanner(banner: Banner): string {
  const { readyMs } = banner;
  const readiness =
    readyMs === undefined ? "not ready yet: the lines above say why" : `ready in ${Math.round(readyMs)} ms`;
  const rows = banner.functions.flatMap(({ name, triggers, handler, limits }) =>
    triggers.map((trigger, index) => (index === 0 ? [name, trigger, handler, limits] : ["", trigger, "", ""])),
  );
  const hints = banner.hints.map(([label, text]) => `  ${styleText("gray", label.padEnd(8))}  ${text}`);
  return [
    "",
    `  ${styleText("bold", `watchfire ${banner.version}`)}   ${readiness}   cluster: ${banner.cluster}`,
    "",
    ...(rows.length > 0 ? table(["FUNCTION", "TRIGGER", "HANDLER", "LIMITS"], rows) : [banner.empty]).map(
      (line) => `  ${line}`,
    ),
    "",
    ...hints,
    "",
    "",
  ].join("\n");
}
