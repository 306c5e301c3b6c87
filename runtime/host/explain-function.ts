import { explain } from "../control/explain/explainer.ts";
import type { FunctionReport } from "../control/function-status/function-report.ts";
import { noSuchFunction } from "../control/no-such-function.ts";
import { type SourceSpec, sourceKey } from "../informer/fanout/source-spec.ts";
import type { FunctionManifest, Trigger } from "../manifest/function.ts";
import type { ExplainQuestion, Explanation, TriggerExplanation } from "../observe/explanation.ts";
import type { RuntimeOptions } from "./components.ts";
import type { Acting } from "./control-api.ts";
import type { LiveFunction } from "./live-function.ts";
import { sourcesByKey } from "./readiness.ts";

/** Reasons of a shard that does not know the object, or of an object that belongs to another shard. */
const ignorant: readonly TriggerExplanation["reason"][] = ["nothing", "key", "shard"];

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

/** Merges the explanations of the shards here, at least one: for each trigger, the first shard that knows the object. */
export function explainShards(shards: readonly Explanation[], elsewhere?: string): Explanation {
  const [first] = shards;
  if (!first) throw new TypeError("no shard is here");
  return {
    ...first,
    triggers: first.triggers.map((trigger, index) => {
      const all = shards.flatMap(({ triggers }) => triggers[index] ?? []);
      const knowing = all.find(({ reason }) => !ignorant.includes(reason));
      const said = knowing ?? all.find(({ reason }) => reason !== "shard") ?? trigger;
      if (said.reason !== "shard" || elsewhere === undefined) return said;
      return { ...said, why: `${said.why}: ${elsewhere}` };
    }),
  };
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
