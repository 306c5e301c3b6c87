import type { Constant } from "./constants.ts";

/**
 * Constants that are named like limits, but limit nothing that grows with functions, objects or events, by the reason.
 */
const byReason: Readonly<Record<string, readonly string[]>> = {
  "a text that people read, or a list in it": [
    "access/dry-run.ts#longestBody",
    "console/error-groups.ts#mostListed",
    "console/error-groups.ts#mostNamed",
    "console/function-time.ts#mostCalls",
    "control/access/gate.ts#askedLimit",
    "control/access/audit-log.ts#mostEvents",
    "control/access/caller.ts#nameLimit",
    "control/access/gate.ts#mostNamed",
    "control/access/reason.ts#reasonLimit",
    "control/function-status/events-of-functions.ts#messageLimit",
    "control/explain/checks.ts#longestExpression",
    "control/explain/explainer.ts#longestText",
    "control/explain/words.ts#mostNamed",
    "control/function-status/function-object.ts#messageLimit",
    "control/function-status/object-publisher.ts#mostDenied",
    "control/function-status/set-object.ts#mostNamed",
    "engine/function-dispatch.ts#mostReported",
    "kube/api-error.ts#textLimit",
    "kube/oidc.ts#shownLimit",
    "observe/code-frame.ts#maxWidth",
    "base/wording.ts#actualLimit",
    "catalog/deploy/revision.ts#messageLimit",
    "catalog/deploy/revision.ts#accountLimit",
  ],
  "one answer, file or object that is read once, and let go of": [
    "observe/endpoints.ts#mostBodyBytes",
    "access/dry-run.ts#objectLimit",
    "console/inquiry.ts#mostPages",
    "console/inquiry.ts#mostAttempts",
    "console/inquiry.ts#mostFailures",
    "history/run-history.ts#mostChanges",
    "history/run-history.ts#mostSearched",
    "control/explain/explainer.ts#mostPages",
    "catalog/signature.ts#keyFileLimit",
    "slots/fleet-leases.ts#listLimit",
    "control/access/account-reviews.ts#tokenLimit",
    "kube/access-review.ts#answerLimit",
    "kube/token-review.ts#answerLimit",
    "kube/account-token.ts#answerLimit",
    "kube/api-error.ts#bodyLimit",
    "kube/exec-plugin.ts#outputLimit",
    "kube/oidc.ts#answerLimit",
    "lease/lease-api.ts#objectLimit",
    "sandbox/startup-error.ts#mostBytes",
    "sandbox/startup-error.ts#mostShown",
  ],
  "a name of Kubernetes'": [
    "access/account.ts#nameLimit",
    "control/access/account-reviews.ts#nameLimit",
    "access/own-objects.ts#stemLimit",
    "catalog/names.ts#indexStemLimit",
    "catalog/names.ts#labelLimit",
    "catalog/names.ts#stemLimit",
    "kube/label-query.ts#mostRequirements",
  ],
  "depth, size or work of one text that is looked through": [
    "access/argument-fault.ts#mostOfKey",
    "access/arguments.ts#longestStateKey",
    "access/encodings.ts#longestEncoded",
    "access/redactor.ts#mostCompared",
    "access/written-body.ts#stepLimit",
    "engine/filter/changed-fields.ts#deepest",
    "engine/filter/named-fields.ts#mostNames",
    "engine/filter/expression.ts#deepestExpression",
    "engine/filter/raw-fields.ts#mostNames",
    "document/document-fault.ts#mostNodes",
    "document/nesting.ts#deepest",
    "informer/scan/value-reader.ts#depthLimit",
    "informer/scan/wasm/json.wasm.ts#depthLimit",
    "informer/scan/wasm/layout.ts#mostMembers",
  ],
  "how much is done at a time": [
    "engine/work/mark-pins.ts#pinnedAtOnce",
    "history/history-file.ts#deletedAtOnce",
    "history/history-file.ts#deletionsAtOnce",
    "migrate/fleet-entry.ts#mostGone",
    "journal/sqlite/known.ts#foldedAtOnce",
    "journal/sqlite/log-thread.ts#mostPasses",
    "journal/sqlite/log.ts#mostIdleLooks",
    "journal/sqlite/log.ts#mostReserve",
    "journal/sqlite/upkeep.ts#mostLiveBytes",
    "journal/sqlite/journal.ts#notedAtOnce",
    "journal/sqlite/journal.ts#rowsAtOnce",
    "engine/intake/list-intake.ts#comparedAtOnce",
    "engine/work/key-backoff.ts#longestDelays",
    "observe/log-writer.ts#piecesAtOnce",
  ],
  "when the heap is collected, or a part is copied": [
    "v8/own-copy.ts#mostBeside",
    "v8/garbage.ts#mostPercent",
    "v8/idle-collector.ts#mostUsedMebibytes",
  ],
};

/** All these constants. */
export const otherLimits: readonly Constant[] = Object.values(byReason)
  .flat()
  .map((place) => {
    const [file = "", name = ""] = place.split("#");
    return { file, name };
  });
