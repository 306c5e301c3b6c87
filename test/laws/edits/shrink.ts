import type { Law } from "./law-names.ts";
import type { Phase, Plan } from "./plan.ts";
import { type Fate, runPlan } from "./world.ts";

/** Maximum number of worlds that are run to find a smaller one. */
const mostTries = 150;

/** Returns the smallest plan found that breaks the same law, with its outcome. */
export async function shrunk(plan: Plan, law: Law, run: typeof runPlan = runPlan): Promise<{ plan: Plan; fate: Fate }> {
  let best = { plan, fate: await run(plan) };
  let tries = 0;
  for (let isSmaller = true; isSmaller && tries < mostTries; ) {
    isSmaller = false;
    for (const candidate of smaller(best.plan)) {
      if (++tries > mostTries) break;
      const fate = await run(candidate);
      if (!fate.broken.some((breach) => breach.law === law)) continue;
      best = { plan: candidate, fate };
      isSmaller = true;
      break;
    }
  }
  return best;
}

/** Slightly smaller plans, the smallest first. */
function* smaller(plan: Plan): Generator<Plan> {
  const { phases } = plan;
  for (let end = 1; end < phases.length; end++) yield quietAtEnd({ ...plan, phases: phases.slice(0, end) });
  for (let at = 1; at < phases.length; at++) yield quietAtEnd({ ...plan, phases: phases.toSpliced(at, 1) });
  for (const [at, phase] of phases.entries()) {
    for (const less of lessOf(phase)) yield { ...plan, phases: phases.with(at, less) };
  }
}

function* lessOf(phase: Phase): Generator<Phase> {
  for (let edit = 0; edit < phase.edits.length; edit++) yield { ...phase, edits: phase.edits.toSpliced(edit, 1) };
  if (phase.steps > 0) yield { ...phase, steps: Math.floor(phase.steps / 2) };
  if (phase.meanwhile > 0) yield { ...phase, meanwhile: phase.meanwhile - 1 };
  for (const each of ["crashes", "troubles", "compacts", "usesOldObject"] as const)
    if (phase[each]) yield { ...phase, [each]: false };
  if (phase.begins !== "stopped") yield { ...phase, begins: "stopped" };
  if (!phase.isQuiet) yield { ...phase, isQuiet: true };
}

function quietAtEnd(plan: Plan): Plan {
  const last = plan.phases.at(-1);
  return last ? { ...plan, phases: plan.phases.with(-1, { ...last, isQuiet: true }) } : plan;
}
