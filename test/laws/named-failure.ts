import { z } from "zod";
import { isWorldKind, type Mutant } from "./mutant.ts";

/** The end of a command that must catch a mutant. */
export interface Ended {
  /** Its status; `null`: it was killed; `endless`: it did not end. */
  readonly code: number | null | "endless";
  /** Output of the check: of worlds, what they printed; of a test file, vitest's report in JSON. */
  readonly output: string;
}

/** The part of vitest's report in JSON that is read here. */
const reportSchema = z.object({
  testResults: z.array(
    z.object({
      assertionResults: z.array(
        z.object({ status: z.string(), fullName: z.string(), failureMessages: z.array(z.string()).default([]) }),
      ),
    }),
  ),
});

/**
 * Returns the names of what failed: a broken law with its seed, or tests. Returns undefined where nothing failed, or nothing is
 * named: a crash, a file that cannot be loaded, and a time-out prove nothing.
 */
export function namedFailure(caughtBy: Mutant["caughtBy"], { code, output }: Ended): string | undefined {
  if (code === 0 || code === null || code === "endless") return undefined;
  if (isWorldKind(caughtBy)) return /^SEED=\d+ .+$/m.exec(output)?.[0];
  const names = failedTests(output);
  return names.length === 0 ? undefined : `${caughtBy}: ${names.join("; ")}`;
}

function failedTests(output: string): string[] {
  const report = reportSchema.safeParse(parsed(output));
  if (!report.success) return [];
  const failed = report.data.testResults.flatMap((file) => file.assertionResults.filter(hasFailed));
  return [...new Set(failed.map(({ fullName }) => fullName))];
}

const hasFailed = ({ status, failureMessages }: { status: string; failureMessages: string[] }): boolean =>
  status === "failed" && failureMessages.some((message) => !/\b(?:Test|Hook) timed out in \d+ ?ms/.test(message));

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
