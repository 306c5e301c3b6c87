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
    edits: [["const keys = [now, before, earlier].flatMap(", "const keys = [now].flatMap("]],
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
  {
    fault: "edits: a body on record is handed over whatever manifest it was written under",
    file: dispatch("position/record-form"),
    edits: [["    return this.as(this.kept, body, form);", "    return body;"]],
    caughtBy: "edits",
    within: { law: "oldForm", edits: ["object", "lastBody", "mode"] },
  },
  {
    fault: "edits: an event that waits comes in the form that it was written in",
    file: dispatch("queue/spill"),
    edits: [['if (!now || type === "Scheduled" || form === now.ofEvents)', 'if (!now || form !== "")']],
    caughtBy: "edits",
    within: { law: "objectForm", edits: ["apiVersion"] },
  },
  {
    fault: "edits: keys that waited are dropped where the mode is left",
    file: dispatch("reconcile/waiting-keys"),
    edits: [["  for (const event of events) commits.putSpilled(event);\n", ""]],
    caughtBy: "edits",
    within: { law: "lost", edits: ["mode"] },
  },
  {
    fault: "edits: a child wakes the keys of the new rule alone",
    file: dispatch("reconcile/wakes"),
    edits: [
      ["keys: isByThisRule ? [] : noted", "keys: isByThisRule ? [] : []"],
      ["  return !(oldBody && (rule.readsMetadataAlone || form.keepsWholeObjects));", "  return !oldBody && !form;"],
    ],
    caughtBy: "edits",
    within: { law: "wokenByEdit", edits: ["key"] },
  },
  {
    fault: "edits: conditions that are no more answer for a deletion",
    file: dispatch("position/view"),
    edits: [["this.form.answers(known.form) ? known.matched : undefined", "known.matched"]],
    caughtBy: "edits",
    within: { law: "heldBack", edits: ["matchConditions"] },
  },
  {
    fault: "edits: a trigger that is renamed begins anew",
    file: dispatch("trigger-views"),
    edits: [["renamesOf(wanted, live, retired)", "renamesOf(wanted, [], retired)"]],
    caughtBy: "test/dispatch/edits/triggers.test.ts",
  },
  {
    fault: "edits: two triggers of a function give one change one id",
    file: dispatch("queue/event-maker"),
    edits: [["eventId({ trigger: view.identity, type,", 'eventId({ trigger: "one", type,']],
    caughtBy: "edits",
    within: { law: "reused", edits: ["concurrency"] },
  },
  {
    fault: "edits: a scope that widens counts its epoch anew",
    file: dispatch("intake/trigger-scope"),
    edits: [["Math.max(cursor.epoch, this.lastEpoch, ...others)", "cursor.epoch + 0 * others.length"]],
    caughtBy: "test/dispatch/edits/triggers.test.ts",
  },
  {
    fault: "edits: what waits is told though its trigger selects it no more",
    file: dispatch("queue/spill"),
    edits: [["isUnselected: !now.selects(event, form)", "isUnselected: !now.selects(event, form) && size < 0"]],
    caughtBy: "edits",
    within: { law: "selection", edits: ["namespaceSelector.matchNames"] },
  },
  {
    fault: "edits: a function that is loaded again leaves what had begun in the journal",
    file: dispatch("dispatcher"),
    edits: [["this.commits.settle(row, event);", "void row;"]],
    caughtBy: "edits",
    within: { law: "rows", edits: ["concurrency", "retry", "namespaceSelector.matchNames"] },
  },
];
