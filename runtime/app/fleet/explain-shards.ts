import type { Explanation, TriggerExplanation } from "../../observe/explanation.ts";

/** What a shard says of an object that it knows nothing of, and of one in a namespace that another shard has. */
const ignorant: readonly TriggerExplanation["reason"][] = ["nothing", "key", "namespace"];

/** What the shards that are here say of one object, as one: of each trigger the first that knows of it. At least one. */
export function explainShards(shards: readonly Explanation[]): Explanation {
  const [first] = shards;
  if (!first) throw new TypeError("no shard is here");
  return {
    ...first,
    triggers: first.triggers.map((trigger, index) => {
      const all = shards.flatMap(({ triggers }) => triggers[index] ?? []);
      const knowing = all.find(({ reason }) => !ignorant.includes(reason));
      return knowing ?? all.find(({ reason }) => reason !== "namespace") ?? trigger;
    }),
  };
}
