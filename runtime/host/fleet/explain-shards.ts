import type { Explanation, TriggerExplanation } from "../../observe/explanation.ts";

/** What a shard says of an object that it knows nothing of, and of one that another shard has. */
const ignorant: readonly TriggerExplanation["reason"][] = ["nothing", "key", "shard"];

/**
 * What the shards that are here say of one object, as one: of each trigger the first that knows of it. At least one.
 * `elsewhere`: where the other shards are, in words; undefined where all are here.
 */
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
