import { relative } from "node:path";
import type { SourceLocation, WatchfireError } from "../base/errors.ts";

/** A check by a command. It passed if it has no faults. */
interface CheckedCase {
  readonly name: string;
  readonly faults: readonly CaseFault[];
}

/** A fault of a case, in one line. */
export interface CaseFault {
  readonly code: string;
  readonly message: string;
  readonly place?: SourceLocation | undefined;
}

/** Returns a fault for programs. `message` has everything in one line. */
export function describeFinding({ code, message, hint, detail }: WatchfireError) {
  const { what, place, path, actual } = detail;
  return { code, message, what, hint, ...(place && { place }), ...(path !== undefined && { path }), actual };
}

/** Returns an error of the registry as a case's fault. */
export const faultOfCase = ({ code, message, detail: { place } }: WatchfireError): CaseFault => ({
  code,
  message,
  place,
});

/** Returns JUnit's XML, which test reporters of CI systems read. `suite`: the command. */
export function junitOf(suite: string, cases: readonly CheckedCase[]): string {
  const failed = cases.filter(({ faults }) => faults.length > 0).length;
  const counts = `tests="${cases.length}" failures="${failed}"`;
  const lines = cases.flatMap(({ name, faults }) => {
    const open = `    <testcase classname="${escapeXml(suite)}" name="${escapeXml(name)}"`;
    if (faults.length === 0) return [`${open}/>`];
    const failures = faults.map(({ code, message }) => {
      const [text, type] = [escapeXml(message), escapeXml(code)];
      return `      <failure type="${type}" message="${text}">${text}</failure>`;
    });
    return [`${open}>`, ...failures, "    </testcase>"];
  });
  const name = escapeXml(suite);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="${name}" ${counts}>`,
    `  <testsuite name="${name}" ${counts}>`,
    ...lines,
    "  </testsuite>",
    "</testsuites>",
  ].join("\n");
}

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** Replaces other control characters, which XML 1.0 does not allow even when escaped. */
const escapeXml = (text: string): string =>
  text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what has to go
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replace(/[&<>"]/g, (character) => entities[character] ?? character);

/** Returns a workflow command of GitHub Actions, which shows the fault at its line of the pull request. */
export function githubAnnotation(level: "error" | "warning", { code, message, place }: CaseFault): string {
  const file = place && { file: relative(process.cwd(), place.file), line: place.line, col: place.column };
  const properties = Object.entries({ ...file, title: code })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${escapeProperty(String(value))}`);
  return `::${level} ${properties.join(",")}::${escapeData(message)}`;
}

const escapeData = (text: string): string =>
  text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");

const escapeProperty = (text: string): string => escapeData(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
