import { explain } from "../control/explain/explainer.ts";
import type { FunctionReport } from "../control/function-status/function-report.ts";
import { type SourceSpec, sourceKey } from "../informer/fanout/source-spec.ts";
import type { FunctionManifest, Trigger } from "../manifest/function.ts";
import type { ExplainQuestion, Explanation } from "../observe/explanation.ts";
import type { ActiveComponents, RuntimeOptions } from "./components.ts";
import { noSuchFunction } from "./control-api.ts";
import type { LiveFunction } from "./live-function.ts";
import { sourcesByKey } from "./readiness.ts";

/**
 * Why a function was not told of an object. `functions`: all that `/status` tells of.
 * @throws WatchfireError WF_RUNTIME_NO_FUNCTION
 */
export async function explainFunction(
  active: ActiveComponents,
  live: LiveFunction | undefined,
  functions: readonly FunctionReport[],
  question: ExplainQuestion,
  options: RuntimeOptions,
): Promise<Explanation> {
  const { watches, redactor, discovery, deadLetters } = active;
  const report = functions.find(({ name }) => name === question.function);
  if (!report)
    throw noSuchFunction(
      question.function,
      functions.map((each) => each.name),
    );
  const { name, ready, reason, message } = report;
  const manifest: Partial<FunctionManifest> = live?.manifest ?? {};
  const subject = {
    report: { name, ready, ...(reason && { reason }), ...(message !== undefined && { message }) },
    triggers: manifest.triggers ?? [],
    schedules: manifest.schedules ?? [],
    dispatch: active.dispatcher.loaded(name),
    sourceOf: (trigger: Trigger, namespace: string) => (live as LiveFunction).specOf(trigger, namespace),
    statusOf: (spec: SourceSpec) => sourcesByKey(watches.status()).get(sourceKey(spec)),
  };
  const redact = (of: string, text: string) => redactor.redact(of, text);
  return explain(subject, question, { ...options, discovery, redact, deadLetters });
}
