import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ExpressionError } from "../../runtime/cel/expression-error.ts";
import { Client } from "../target/client.ts";
import { start } from "../target/real-target.ts";
import type { OwnTarget } from "../target/target.ts";
import { assetsFolder } from "../tools/assets.ts";
import { AdmissionEvaluator } from "./admission-evaluator.ts";
import { evaluate } from "./evaluate.ts";

/** Expressions by subject: `# subject`, then one per line. */
const subjects = readFileSync(new URL("expressions.txt", import.meta.url), "utf8")
  .split(/^# /m)
  .slice(1)
  .map((text) => {
    const [subject = "", ...lines] = text.split("\n");
    return [subject, lines.filter((line) => line !== "")] as const;
  });

/** The value as text; `undefined` if the expression does not compile or has no value. */
function ours(expression: string): string | undefined {
  try {
    const value = evaluate(`'%s'.format([${expression}])`);
    return value instanceof Error ? undefined : String(value);
  } catch (error) {
    if (error instanceof ExpressionError) return undefined;
    throw error;
  }
}

const folder = assetsFolder();
if (!folder) {
  process.stdout.write("conditions are not compared with a real kube-apiserver: KUBEBUILDER_ASSETS is not set\n");
}

describe.skipIf(!folder)("a condition and the admission policies of a real kube-apiserver", () => {
  let target: OwnTarget;
  let client: Client;
  let theirs: ReadonlyMap<string, string | undefined>;
  beforeAll(async () => {
    target = await start([]);
    client = new Client(target.access);
    theirs = await new AdmissionEvaluator(client).evaluate(subjects.flatMap(([, expressions]) => expressions));
  }, 120_000);
  afterAll(async () => {
    await client?.close();
    await target?.close();
  });

  it.each(subjects)(
    "have the same values of %s",
    (_, expressions) => {
      const both = expressions.map((expression) => ({
        expression,
        ours: ours(expression),
        theirs: theirs.get(expression),
      }));
      expect(both.filter((each) => each.ours !== each.theirs)).toEqual([]);
      expect(both.filter((each) => each.theirs !== undefined).length).toBeGreaterThan(expressions.length / 3);
    },
    120_000,
  );
});
