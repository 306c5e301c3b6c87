import { type ErrorEntry, user } from "./entry.ts";

/** Errors of deploying functions to a cluster and of loading deployed functions. */
export const deployedCodes = {
  WF_DEPLOYED_EMPTY: user(
    "the functions folder contains no function to deploy",
    "name the right folder with --functions; to remove a set, run `watchfire undeploy --set NAME`",
  ),
  WF_DEPLOYED_TOO_LARGE: user(
    "a function is too large for a ConfigMap",
    "import less (`npx esbuild --analyze` shows the sizes), or put it into an image",
  ),
  WF_DEPLOYED_REFUSED: user(
    "the API server refused an object of the deployment",
    "correct what the API server names and deploy again; the running functions were not changed",
  ),
  WF_DEPLOYED_TAKEN: user(
    "a function or an object of the deployment belongs to another set, or not to this runtime",
    "rename the function, or give the runtime another account; nothing was written",
  ),
  WF_DEPLOYED_FORBIDDEN: user(
    "a function in a shared namespace lacks a right: its own account must be allowed to list and watch what it reads",
    "run `watchfire deploy` again to grant it; the function continues within 10 s, and misses no net change",
  ),
  WF_DEPLOYED_LIMIT: user(
    "the sets of a namespace exceed a limit of the runtime",
    "deploy less, or ask whoever runs the runtime for a higher value of `sets.limits`; what ran before still runs",
  ),
  WF_DEPLOYED_REMOVES: user(
    "a deployment would remove functions, which needs a confirmation",
    "run the command again with --yes if that is intended; if not, name another folder (--functions), set (--set) or revision (--to)",
  ),
  WF_DEPLOYED_NO_SETS: user(
    "the runtime's version has no sets: it would stop the functions that this set takes over",
    "upgrade the runtime first, or deploy with `--set default`",
  ),
  WF_DEPLOYED_NO_SET: user(
    "the runtime has no such set",
    "name one that it has; `kubectl get configmap -l watchfire.dev/set` shows their objects",
  ),
  WF_DEPLOYED_LACKS_RIGHTS: user(
    "the functions' accounts lack rights, or their rights cannot be checked, and `--code-only` grants nothing",
    "nothing was written; let somebody who may grant rights run `watchfire deploy` without --code-only, or `watchfire rbac | kubectl apply --server-side --force-conflicts -f -`",
  ),
  WF_DEPLOYED_NO_REVISION: user(
    "the set has no such revision to go back to",
    "`watchfire revisions` lists those that it has; older code is deployed from its sources",
  ),
  WF_DEPLOYED_REVISION_GONE: user(
    "the code of a revision is missing, or was changed after the deployment",
    "roll back to another one, or deploy the code from its sources; nothing was written",
  ),
  WF_DEPLOYED_CANARY: user(
    "a canary may change only code, `resources.memory`, `resources.cpuPerEvent`, `isolation` and `canary` of deployed functions",
    "deploy the set without --canary, or make this change in a deployment before; nothing was written",
  ),
  WF_DEPLOYED_NO_CANARY: user(
    "the set has no canary",
    "`watchfire deploy --canary 10%` begins one; `watchfire revisions` shows what was deployed",
  ),
  WF_DEPLOYED_CANARY_ABORTED: user(
    "the canary was aborted by the runtime, or the runtime has not reported it yet, so that it is not promoted",
    "look at `watchfire canary`, and correct the code; `watchfire deploy` without --canary deploys without comparing",
  ),
  WF_DEPLOYED_CONFLICT: user(
    "somebody else deployed to the same runtime at the same time",
    "check what they deployed, and run the command again",
  ),
  WF_DEPLOYED_INDEX: user("the list of the deployed functions cannot be used", "run `watchfire deploy` again"),
  WF_DEPLOYED_KEY: user(
    "a file contains no key for signing, or no key to trust",
    "make one with `openssl genpkey -algorithm ed25519 -out watchfire.key`; runtime/docs/signing.md says more",
  ),
  WF_DEPLOYED_UNTRUSTED: user(
    "the deployed functions are not signed for this runtime by a key that it trusts",
    "run `watchfire deploy --sign KEY` with a trusted key; if they were signed before, find out who wrote the ConfigMap",
  ),
  WF_DEPLOYED_REPLAYED: user(
    "the deployed functions are older than signed functions that ran before",
    "find out who put the older ones back; to go back yourself, run `watchfire deploy --sign KEY` with the older functions",
  ),
  WF_DEPLOYED_SERIAL: user(
    "the file that records the newest signed deployment cannot be read",
    "find out who changed the file, and restore it; without it, any index that a trusted key ever signed is loaded",
  ),
  WF_DEPLOYED_DAMAGED: user(
    "a deployed function's ConfigMap is missing, or was changed after the deployment",
    "run `watchfire deploy` again",
  ),
} as const satisfies Record<string, ErrorEntry>;
