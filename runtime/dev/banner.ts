import { styleText } from "node:util";
import { table } from "./table.ts";

/** One line of the banner's table. */
interface BannerFunction {
  readonly name: string;
  /** Such as `v1/ConfigMap in team-a`; one line each. */
  readonly triggers: readonly string[];
  readonly handler: string;
  readonly limits: string;
}

export interface Banner {
  readonly version: string;
  /** From the start of the process, in milliseconds; undefined where it is not ready yet. */
  readonly readyMs: number | undefined;
  readonly cluster: string;
  readonly functions: readonly BannerFunction[];
  /** What stands in the place of a table without a row. */
  readonly empty: string;
  /** Label and what to type or open. */
  readonly hints: readonly (readonly [label: string, text: string])[];
}

/** What `watchfire dev` prints once it is ready, or has waited for that. */
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
