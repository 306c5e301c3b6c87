import type { Mutant } from "../mutant.ts";

const dispatch = (path: string) => `runtime/dispatch/${path}.ts`;

/** Faults of edits of the manifest that worlds with edits catch. */
export const mutants: readonly Mutant[] = [
  {
    fault: "edits: a digest of other changed fields counts as one of these",
    file: dispatch("filter/filter"),
    edits: [["&& !this.digest.made(hash);", "&& this.digest.made(hash) && !this.digest.made(hash);"]],
    caughtBy: "edits",
    within: { law: "unchanged", edits: ["changedFields"] },
  },
  {
    fault: "edits: a position is resumed under other selectors",
    file: dispatch("intake/state"),
    edits: [["if (before !== selection) return", "if (before === undefined) return"]],
    caughtBy: "edits",
    within: { law: "selected", edits: ["labelSelector"] },
  },
  {
    fault: "edits: namespaces that are named no more are left without a word",
    file: dispatch("intake/trigger-scope"),
    edits: [["      this.retain(namespaces.names);\n", ""]],
    caughtBy: "edits",
    within: { law: "unselected", edits: ["namespaceSelector.matchNames"] },
  },
  {
    fault: "edits: what an edit selects is told as if history had been lost",
    file: dispatch("intake/reading"),
    edits: [[`{ Added: "selected", Deleted`, `{ Added: "relist", Deleted`]],
    caughtBy: "edits",
    within: { law: "saysSelected", edits: ["labelSelector", "fieldSelector"] },
  },
  {
    fault: "edits: what an edit lets go is told as if history had been lost",
    file: dispatch("intake/reading"),
    edits: [[`Deleted: "unselected" }`, `Deleted: "relist" }`]],
    caughtBy: "edits",
    within: { law: "saysUnselected", edits: ["labelSelector", "fieldSelector"] },
  },
  {
    fault: "edits: nobody says that a trigger is gone in whose place events wait",
    file: dispatch("retirement"),
    edits: [["      if (waiting > 0)\n", "      if (waiting < 0)\n"]],
    caughtBy: "edits",
    within: { law: "waits", edits: ["trigger removed", "trigger added"] },
  },
  {
    fault: "edits: a change of a child wakes the key that it came to alone",
    file: dispatch("reconcile/wakes"),
    edits: [["const keys = [now, before].flatMap(", "const keys = [now].flatMap("]],
    caughtBy: "edits",
    within: { law: "woken", edits: ["concurrency", "debounce", "retry"] },
  },
  {
    fault: "edits: an event that waits on disk is told whatever its type",
    file: dispatch("filter/filter"),
    edits: [
      ["const wanted = this.rules.events.includes(type);", "const wanted = this.rules.events.length > 0;"],
      [`const isWanted = rules.events.includes("Added")`, `const isWanted = rules.events.includes("Added" as never)`],
    ],
    caughtBy: "edits",
    within: { law: "type", edits: ["events"] },
  },
];
