import type { Constant } from "./constants.ts";

/** Constants that are called as bounds are, and bound nothing that grows with functions, objects or events; by why not. */
const byReason: Readonly<Record<string, readonly string[]>> = {
  "a text that people read, or a list in it": [
    "access/rehearsal.ts#longestBody",
    "app/explain/checks.ts#longestExpression",
    "app/explain/explainer.ts#longestText",
    "app/explain/woken.ts#mostNamed",
    "app/function-status/function-object.ts#messageLimit",
    "app/function-status/status-publisher.ts#mostDenied",
    "dispatch/object-report.ts#mostTold",
    "kube/api-error.ts#textLimit",
    "kube/oidc.ts#shownLimit",
    "observe/code-frame.ts#maxWidth",
    "wording.ts#actualLimit",
  ],
  "one answer, file or object that is read once, and let go of": [
    "access/rehearsal.ts#objectLimit",
    "app/explain/explainer.ts#mostPages",
    "app/function-desk.ts#mostRuns",
    "catalog/signature.ts#keyFileLimit",
    "fleet/fleet-leases.ts#listLimit",
    "kube/access-review.ts#answerLimit",
    "kube/account-token.ts#answerLimit",
    "kube/api-error.ts#bodyLimit",
    "kube/exec-plugin.ts#outputLimit",
    "kube/oidc.ts#answerLimit",
    "lease/lease-api.ts#objectLimit",
  ],
  "a name of Kubernetes'": [
    "access/account.ts#nameLimit",
    "access/own-objects.ts#stemLimit",
    "catalog/names.ts#labelLimit",
    "catalog/names.ts#stemLimit",
    "kube/label-query.ts#mostRequirements",
  ],
  "depth, size or work of one text that is looked through": [
    "access/encodings.ts#longestEncoded",
    "access/redactor.ts#mostCompared",
    "access/written-body.ts#stepLimit",
    "dispatch/filter/changed-fields.ts#deepest",
    "dispatch/filter/named-fields.ts#mostNames",
    "dispatch/filter/raw-fields.ts#mostNames",
    "document/document-fault.ts#mostNodes",
    "document/nesting.ts#deepest",
    "watch/partial-value.ts#depthLimit",
    "watch/wasm/json.wasm.ts#depthLimit",
    "watch/wasm/layout.ts#mostMembers",
  ],
  "how much is done at a time": [
    "app/positions/into-fleet.ts#mostGone",
    "checkpoint/sqlite-known.ts#foldedAtOnce",
    "checkpoint/sqlite-log-thread.ts#mostPasses",
    "checkpoint/sqlite-log.ts#mostIdleLooks",
    "checkpoint/sqlite-log.ts#mostReserve",
    "checkpoint/sqlite-upkeep.ts#mostLiveBytes",
    "checkpoint/sqlite.ts#notedAtOnce",
    "checkpoint/sqlite.ts#rowsAtOnce",
    "dispatch/reconcile/rests.ts#longestDelays",
    "observe/log-writer.ts#piecesAtOnce",
  ],
  "when the heap is collected, or a part is copied": [
    "apart.ts#mostBeside",
    "garbage.ts#mostPercent",
    "quiet-collection.ts#mostUsedMebibytes",
  ],
};

/** All of them. */
export const otherLimits: readonly Constant[] = Object.values(byReason)
  .flat()
  .map((place) => {
    const [file = "", name = ""] = place.split("#");
    return { file, name };
  });
