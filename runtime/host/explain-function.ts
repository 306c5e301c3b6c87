import { explain, explainShards } from "../control/explain/explainer.ts";
import type { FunctionReport } from "../control/function-status/function-report.ts";
import { noSuchFunction } from "../control/no-such-function.ts";
import { type SourceSpec, sourceKey } from "../informer/fanout/source-spec.ts";
import type { FunctionManifest, Trigger } from "../manifest/function.ts";
import type { ExplainQuestion, Explanation } from "../observe/explanation.ts";
import type { RuntimeOptions } from "./components.ts";
import type { Acting } from "./control-api.ts";
import type { LiveFunction } from "./live-function.ts";
import { sourcesByKey } from "./readiness.ts";

/**
 * Explains why a function did not receive an object.
 * @param here the function's shards here, at least one
 * @param functions the reports of `/status`
 * @param elsewhere describes where the other shards are; `undefined` if all are here
 * @throws WatchfireError WF_RUNTIME_NO_FUNCTION
 */
export async function explainFunction(
  here: readonly Acting[],
  functions: readonly FunctionReport[],
  question: ExplainQuestion,
  options: RuntimeOptions,
  elsewhere?: string,
): Promise<Explanation> {
  const shards = await Promise.all(here.map((acting) => explainShard(acting, functions, question, options)));
  return explainShards(shards, elsewhere);
}

function explainShard(
  { live: find, watches, redactor, discovery, deadLetters, dispatcher }: Acting,
  functions: readonly FunctionReport[],
  question: ExplainQuestion,
  options: RuntimeOptions,
): Promise<Explanation> {
  const live = find(question.function);
  const report = functions.find(({ name }) => name === question.function);
  if (!report) {
    const names = functions.map((each) => each.name);
    throw noSuchFunction(question.function, names);
  }
  const { name, ready, reason, message } = report;
  const manifest: Partial<FunctionManifest> = live?.manifest ?? {};
  const subject = {
    report: { name, ready, ...(reason && { reason }), ...(message !== undefined && { message }) },
    triggers: manifest.triggers ?? [],
    schedules: manifest.schedules ?? [],
    dispatch: dispatcher.loaded(name),
    sourceOf: (trigger: Trigger, namespace: string) =>
      (live as Pick<LiveFunction, "specOf">).specOf(trigger, namespace),
    statusOf: (spec: SourceSpec) => sourcesByKey(watches.status()).get(sourceKey(spec)),
  };
  const redact = (of: string, text: string) => redactor.redact(of, text);
  return explain(subject, question, { ...options, discovery, redact, deadLetters });
}
