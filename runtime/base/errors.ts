import { backupCodes } from "./error-codes/backup.ts";
import { controlCodes } from "./error-codes/control.ts";
import { deployedCodes } from "./error-codes/deployed.ts";
import { type ErrorClass, type ErrorEntry, system, user } from "./error-codes/entry.ts";
import { leaseCodes } from "./error-codes/lease.ts";
import { natsCodes } from "./error-codes/nats.ts";
import { readsCodes } from "./error-codes/reads.ts";
import { sandboxCodes } from "./error-codes/sandbox.ts";
import { stateCodes } from "./error-codes/state.ts";
import { clean, shorten } from "./wording.ts";

/**
 * The registry of all failures that a user can see, by code: `WF_<AREA>_<WHAT>`. A retired code is never reused. One section per
 * area; some are in separate files.
 */
export const errorCodes = {
  // cli
  WF_CLI_USAGE: user("the command line is wrong", "run `watchfire --help`"),
  WF_CLI_ENVIRONMENT: user("an environment variable has a value that cannot be used", "correct it or unset it"),
  WF_CLI_UNREACHABLE: user(
    "no runtime answers at the URL",
    "start it, or name another with --url or --data; `watchfire dead-letters --data DIR` reads the folder of a stopped one",
  ),
  WF_CLI_REFUSED: user(
    "the runtime refused the request",
    "send it from the runtime's own machine, in a pod by `kubectl exec` into its container; its log may say more",
  ),
  WF_CLI_KUBECTL: user(
    "kubectl cannot be run on the embedded cluster",
    "install kubectl: https://kubernetes.io/docs/tasks/tools/ has it for every system",
  ),
  WF_CLI_FORWARD: user(
    "the runtime in a cluster is not reached through kubectl",
    "look at what kubectl says; you may lack rights on pods, pods/portforward or functions.watchfire.dev in the runtime's namespace: `watchfire rbac --role operator` prints the Role",
  ),
  WF_CLI_FOLDER: user(
    "a project cannot be written to its folder",
    "name a folder that you may write with --name, or run it in one",
  ),
  WF_CLI_NOT_RECORDED: user(
    "no event arrived to be recorded",
    "change an object that it watches, deliver one again with --object, or wait longer with --timeout",
  ),
  WF_CLI_FIXTURE: user("a fixture cannot be written", "name a folder that you may write with --to"),
  WF_CLI_SUPPORT: user("a support file cannot be written", "name a file that you may write with --to"),
  WF_CLI_NODE: user("this version of Node is too old", "install Node 24 or newer"),
  WF_CLI_PNP: user(
    "the packages are in archives of Yarn's Plug'n'Play, which executors cannot read",
    "put `nodeLinker: node-modules` into .yarnrc.yml, and run `yarn install`",
  ),

  // manifest
  WF_MANIFEST_FOLDER: user(
    "the functions folder cannot be read",
    "name an existing folder with --functions, or run it in the project's folder",
  ),
  WF_MANIFEST_NONE: user(
    "there is no function to validate in the folder",
    "name the right folder with --functions, or add NAME/function.yaml and a handler.ts to this one",
  ),
  WF_MANIFEST_STRAY: user(
    "a folder has a handler or a manifest and is not read as a function: a warning, which refuses nothing",
    "write a function.yaml next to the handler; name a file that functions share otherwise than handler",
  ),
  WF_MANIFEST_UNREADABLE: user("the manifest cannot be read", "check that it is a readable file of at most 1 MiB"),
  WF_MANIFEST_SYNTAX: user("the manifest is not valid YAML", "correct the YAML at that place"),
  WF_MANIFEST_DUPLICATE_KEY: user("a field appears twice", "keep one of the two"),
  WF_MANIFEST_NOT_A_FUNCTION: user(
    "the document is not a Function of a version that this runtime knows",
    "begin it with `apiVersion: watchfire.dev/v1alpha1` and `kind: Function`",
  ),
  WF_MANIFEST_UNKNOWN_FIELD: user(
    "the manifest has a field that the schema does not know",
    "remove it, or correct its spelling",
  ),
  WF_MANIFEST_MISSING_FIELD: user("a required field is missing", "add it"),
  WF_MANIFEST_WRONG_TYPE: user("a field has a value of the wrong type", "give a value of the expected type"),
  WF_MANIFEST_INVALID_VALUE: user("a field has a value that cannot be used", "correct the value"),
  WF_MANIFEST_EXPRESSION: user("a CEL expression does not compile", "correct the expression"),
  WF_MANIFEST_DUPLICATE_NAME: user("two functions or two triggers have the same name", "rename one of them"),
  WF_MANIFEST_VALUE_UNKNOWN: user(
    "a placeholder of a manifest has no value",
    "add it to the file of --values, or correct the name; for the text itself, write `$${`",
  ),
  WF_MANIFEST_VALUE_UNUSED: user(
    "the file of --values has a value that no manifest uses",
    "remove it, or correct the name",
  ),
  WF_MANIFEST_VALUE_INVALID: user(
    "a placeholder of a manifest, or the file of --values, cannot be used",
    "correct it at that place",
  ),
  WF_MANIFEST_NOT_SERVED: user(
    "the manifest names a kind, a resource or an API group that the cluster does not serve",
    "correct the name, or apply the CustomResourceDefinition first",
  ),
  WF_MANIFEST_NOT_BUILT_IN: user(
    "the manifest names a kind or a resource that Kubernetes is not known to have: a warning, which refuses nothing",
    "correct the name; where a newer Kubernetes has it, `watchfire validate --context NAME` asks that cluster",
  ),
  WF_MANIFEST_HANDLER_MISSING: user("the handler's file does not exist", "correct `spec.handler`, or create the file"),
  WF_MANIFEST_SECRETS: user(
    "a trigger or a read selects Secrets that `permissions` does not let the function list",
    "grant list on secrets in the same namespaces, so that a reviewer of the permissions sees it",
  ),

  // bundle
  WF_BUNDLE_HANDLER_MISSING: user("the handler's file cannot be read", "correct `spec.handler`, or create the file"),
  WF_BUNDLE_SYNTAX: user("the handler or a file it imports cannot be parsed", "fix the syntax at this place"),
  WF_BUNDLE_UNRESOLVED: user(
    "an import cannot be found",
    "correct the path, or install the package in the functions' project with `npm install`",
  ),
  WF_BUNDLE_NO_HANDLER: user(
    "the handler's file does not export a function as its default",
    "write `export default defineHandler(async (event, ctx) => { … })`",
  ),
  WF_BUNDLE_NODE_BUILTIN: user("the handler imports a module of Node", "use the Web platform's counterpart, or `ctx`"),
  WF_BUNDLE_NATIVE_ADDON: user("the handler imports native code", "use a package that is written in JavaScript only"),
  WF_BUNDLE_DYNAMIC_IMPORT: user(
    "the name of an import is only known at run time",
    "write the name as a literal: all code is bundled when the function is loaded",
  ),
  WF_BUNDLE_TOP_LEVEL_AWAIT: user(
    "a file awaits at its top level, where a script cannot",
    "await inside the handler, or in a function that it calls",
  ),
  WF_BUNDLE_BROKEN_OFF: system(
    "the builder process ended during the build, each time",
    "find out what ended it (the kernel, if memory was short), and save the handler again, or start again",
  ),
  WF_BUNDLE_ABSENT_NAME: user("the handler uses a global that isolates lack", "use the language or the Web platform"),
  WF_BUNDLE_OUTSIDE: user(
    "a function imports a file outside of the functions folder",
    "put the file into the functions folder, or install it as a package (`npm install ./path`)",
  ),
  WF_BUNDLE_HIDDEN: user(
    "a function imports a file that is hidden, or is in a hidden folder",
    "give it a name without a leading dot; names with one are for settings and credentials",
  ),
  WF_BUNDLE_NOT_A_FILE: user(
    "a function imports something other than a regular file",
    "import a file: nothing is built from folders, pipes, sockets or devices",
  ),
  WF_BUNDLE_UNREADABLE: user(
    "the system does not let a build read a file",
    "let the user that runs this read the file, and enter the folders above it; otherwise fix what the system names",
  ),
  WF_BUNDLE_LIMIT: user(
    "a build exceeds its limit of time, memory, files or bytes",
    "import less, and keep data out of the code; the limits are in runtime/docs/building.md",
  ),

  // build
  WF_BUILD_FOLDER: user(
    "the built functions cannot be written to the folder",
    "name an empty folder, or one that an earlier build wrote, with --out",
  ),
  WF_BUILD_DAMAGED: user(
    "a folder of built functions differs from what was built; no function of it runs",
    "run `watchfire build` again, and copy everything that it writes",
  ),
  WF_BUILD_UNTRUSTED: user(
    "no key that the runtime trusts signed the functions folder; no function of it runs",
    "run `watchfire build --sign KEY` with a trusted key, and copy everything that it writes",
  ),
  WF_BUILD_SOURCES: user(
    "the functions are sources, but this runtime does not build",
    "provide the output of `watchfire build` in an image, or run `watchfire deploy`",
  ),

  // kube
  WF_KUBE_CONFIG: user("the kubeconfig cannot be used", "check the file, or name another with --kubeconfig"),
  WF_KUBE_EXEC_PLUGIN: user(
    "the credential plugin named by the kubeconfig failed",
    "run the plugin by hand, or sign in again as it asks",
  ),
  WF_KUBE_UNREACHABLE: system(
    "the API server cannot be reached",
    "check that the cluster runs and that its address, proxy and certificate are right",
  ),
  WF_KUBE_CREDENTIALS: user(
    "the API server does not accept the credentials",
    "sign in again, or correct the token or client certificate of the kubeconfig's user",
  ),
  WF_KUBE_CERTIFICATE: user(
    "the API server's certificate is not trusted",
    "correct the kubeconfig's certificate-authority, or its server's name",
  ),
  WF_KUBE_PROTOCOL: system(
    "something other than an API server answered",
    "correct the server's address in the kubeconfig, or look for a proxy or login page before the API server",
  ),
  WF_KUBE_NOT_WATCHABLE: user(
    "the kind cannot be listed and watched",
    "name a kind that `kubectl get --watch` can follow",
  ),
  WF_KUBE_CLUSTER_SCOPED: user(
    "the kind is cluster-scoped, but the trigger selects namespaces",
    "remove the trigger's namespaceSelector",
  ),
  WF_KUBE_FORBIDDEN: user(
    "an account lacks a right that it needs at the API server",
    "`watchfire doctor` says what is missing, and the command that grants it; no restart is needed",
  ),

  // types
  WF_TYPES_DEFINITION: user(
    "a CustomResourceDefinition cannot be read",
    "correct it; `kubectl apply --dry-run=server -f FILE` says more",
  ),
  WF_TYPES_NONE: user(
    "there is no CustomResourceDefinition to generate types from",
    "name a file or folder of them with --crd, or a cluster that has some with --kubeconfig or --context",
  ),
  WF_TYPES_HANDLER: user("the compiler refuses a function's code", "fix the code at this place"),
  WF_TYPES_STALE: user(
    "a `function.d.ts` has other types than its manifest, which has changed since",
    "run `watchfire types`",
  ),
  WF_TYPES_TRIGGER: user(
    "a handler's types name a trigger that its manifest does not have, or another kind than the trigger watches",
    "name the manifest's triggers in `Triggers<{ … }>`, each with the type of its kind",
  ),
  WF_TYPES_COMPILER: system("the project's TypeScript compiler did not finish", "run `npx tsc --noEmit`"),
  WF_TYPES_FOLDER: user("the types cannot be written", "name a folder that can be written with --out"),

  ...leaseCodes,

  // filter
  WF_FILTER_CONDITION_SYNTAX: user("a match condition cannot be parsed", "correct the CEL expression at this place"),
  WF_FILTER_CONDITION_TYPE: user(
    "a match condition does not fit its variables",
    "use `object` and `oldObject`, and return true or false",
  ),

  // checkpoint
  WF_CHECKPOINT_LOCKED: user(
    "another runtime uses this data folder",
    "stop the other one, or give this one another folder with --data",
  ),
  WF_CHECKPOINT_NEWER_SCHEMA: user(
    "the data folder was written by a newer version",
    "run that version or a newer one; the folder was not changed",
  ),
  WF_CHECKPOINT_CORRUPT: system(
    "the checkpoint file is damaged",
    "restore it from a copy, or move it and its log (`-wal`) away to start over: every existing object is then new to the functions",
  ),
  WF_CHECKPOINT_READ_ONLY: user(
    "the data folder cannot be written",
    "give the runtime's user write access to it, or name another folder with --data",
  ),
  WF_CHECKPOINT_WRITE_FAILED: system(
    "a checkpoint could not be written",
    "free space on the disk or repair it; no handler starts until a write succeeds",
  ),
  WF_CHECKPOINT_FENCED: system(
    "another runtime has taken the checkpoint over",
    "this one writes nothing more. A replica that is started again becomes a standby; only one runtime may use a data folder",
  ),
  WF_CHECKPOINT_GONE: user(
    "the checkpoint's file was removed while a runtime used it",
    "start it again; every existing object is then new to the functions. Nothing else may change a data folder while its runtime runs",
  ),
  WF_CHECKPOINT_OTHER_CLUSTER: user(
    "the data folder belongs to another cluster",
    "name that cluster's context, or give this one another folder with --data, or another account on NATS",
  ),
  WF_CHECKPOINT_FULL: user(
    "the Secrets that hold the checkpoint are full",
    "drop dead letters that are not needed, watch fewer objects, or keep the checkpoint on a volume (--store sqlite); no handler starts until it fits",
  ),
  WF_CHECKPOINT_LIMITS: user(
    "checkpoints in Secrets have little room: a warning, which refuses nothing",
    "keep them on a volume (--store sqlite) if more is watched, or if more events wait; runtime/docs/replicas.md has the limits",
  ),
  WF_CHECKPOINT_OLD_OBJECT: user(
    "a function reads the previous object, which Secrets do not keep: a warning, which refuses nothing",
    "write the handler for a missing `oldObject`, or keep checkpoints on a volume (--store sqlite)",
  ),
  WF_CHECKPOINT_SECRETS: user(
    "the Secrets that hold the checkpoint cannot be used",
    "apply what `watchfire rbac --store kubernetes` prints: the Secrets, and get and update of them",
  ),
  ...natsCodes,
  WF_CHECKPOINT_ELSEWHERE: user(
    "the checkpoints are not where this runtime looks for them",
    "restore the volume or the Secrets that contain them. To start over, empty the Secrets, the streams on NATS and the data folder, and delete the Lease. Every existing object is new to the functions then",
  ),
  WF_CHECKPOINT_AWAITED: user(
    "the checkpoints are still in another place, and the runtime waits for them",
    "nothing is lost. End the runtime that has them; keep the folder, the Secrets or NATS reachable for one replica until its log says `checkpoints moved`. It then continues by itself",
  ),
  WF_CHECKPOINT_MISSING: user("there is no checkpoint in this folder", "name the runtime's data folder with --data"),
  WF_CHECKPOINT_NO_DEAD_LETTER: user("there is no such dead letter", "see `watchfire dead-letters list`"),
  WF_CHECKPOINT_LETTER_HOMELESS: user(
    "a dead letter's function or trigger is gone",
    "put the function or the trigger back under its name and replay the letter then, or drop it",
  ),
  WF_CHECKPOINT_LETTER_EMPTY: user(
    "a dead letter's body was dropped because of its function's limit",
    "deliver the object's current state with `watchfire redeliver FUNCTION --object NAMESPACE/NAME`, then drop the dead letter; raise delivery.deadLetters.maxSize to keep more",
  ),
  ...backupCodes,

  // dispatch
  WF_DISPATCH_CRASH_LOOP: system(
    "the runtime ended several times while the handler had this event",
    "find out what ended it, fix the handler, then replay the dead letter",
  ),

  // sandbox
  ...sandboxCodes,

  // reads
  ...readsCodes,
  // state
  ...stateCodes,

  // access
  WF_ACCESS_OWN_ADDRESS: user(
    "a handler's fetch may not reach the runtime's own endpoints, whatever its manifest declares",
    "look at /status and /metrics from outside; no handler may read, replay or drop dead letters",
  ),
  WF_ACCESS_CODING: user(
    "the answer to a handler's fetch cannot be decoded",
    "look at what the server sends with `curl --raw -v`; it may be damaged, cut short, or in more than five codings",
  ),
  WF_ACCESS_INEXACT_NUMBER: user(
    "a handler would write an integer beyond 2^53 that JavaScript may have rounded, or a BigInt of more than 64 bits",
    'write a BigInt; `wholeNumber(object.spec, "id")` of the SDK reads such a number exactly',
  ),
  WF_ACCESS_OWN_OBJECT: user(
    "a function may neither write the runtime's own objects nor read its Secrets, whatever its manifest grants",
    "give the object another name or namespace; runtime/docs/reserved.md lists the reserved names and labels",
  ),
  WF_ACCESS_SUBRESOURCE: user(
    "no function may write to attach, exec, portforward, proxy or token of any object, whatever its manifest grants",
    "have a Job do it, under another ServiceAccount",
  ),
  WF_ACCESS_ENV: user(
    "a value of a function's environment cannot be read",
    "create the Secret or ConfigMap in the runtime's namespace, or mark the reference `optional: true`",
  ),

  // rbac
  WF_RBAC_WILDCARD: user(
    "a permission grants everything, which no function should have",
    "name the resources and their API groups, one by one",
  ),
  WF_RBAC_OWN_OBJECTS: user(
    "a permission reaches the runtime's own objects: a warning, which refuses nothing",
    "give it `namespaces` other than the runtime's, or `resourceNames`; runtime/docs/reserved.md lists the runtime's objects",
  ),
  WF_RBAC_POWERFUL: user(
    "a permission reaches further than it says, such as to every account: a warning, which refuses nothing",
    "narrow it, or have it reviewed as a cluster-wide right; runtime/docs/security.md lists what each grant reaches",
  ),
  WF_RBAC_CALL: user(
    "a handler makes a call that no permission of its manifest grants: a warning, which refuses nothing",
    "add the rule to `permissions`, or remove the call; the call is a ForbiddenError until then",
  ),
  WF_RBAC_UNKNOWN_KIND: user(
    "the resource behind a trigger's kind is not known without a cluster",
    "put its CustomResourceDefinition as a YAML file into the function's folder, or name a cluster that serves it with --kubeconfig",
  ),
  WF_RBAC_NO_NAMESPACE: user(
    "a namespace that the functions or their runtime need does not exist",
    "create it with `kubectl create namespace NAME` and grant the rights in it, or remove it from the manifests",
  ),

  ...controlCodes,

  // observe
  WF_OBSERVE_LISTEN: user(
    "the endpoints' address cannot be bound",
    "stop the process that listens there, or choose another with --port or --listen",
  ),

  WF_OBSERVE_TOKEN: user(
    "only callers with a token may see dead letters, objects and the activity of a function",
    "name the runtime's data folder with --data in addition to --url: the command reads the token from its file `token`; in a cluster, name the runtime with -n, or start it with --token-review",
  ),

  // dev
  WF_DEV_CLUSTER_PORT: user(
    "the embedded cluster cannot listen on the port",
    "name another port, 0 for any free one, or end the process that uses this one",
  ),
  WF_DEV_CLUSTER_LOCKED: user(
    "another process uses this state file for its embedded cluster",
    "use its cluster with --kubeconfig, give this one another folder with --data (another file with --state), or end that process",
  ),
  WF_DEV_CLUSTER_STATE: user(
    "the embedded cluster's state file cannot be read",
    "name another file, or delete this one to start with an empty cluster",
  ),
  WF_DEV_CLUSTER_FILES: user(
    "the embedded cluster's files cannot be written",
    "name a writable folder: --data for `watchfire dev`, --state and --kubeconfig for `watchfire cluster`",
  ),
  WF_DEV_REAL_PROGRAMS: user(
    "the programs of a real API server, which --real starts, are not there",
    "`go run sigs.k8s.io/controller-runtime/tools/setup-envtest@latest use 1.36.x -p path` downloads them and prints their folder: set KUBEBUILDER_ASSETS to it",
  ),
  WF_DEV_REAL_START: system(
    "the real API server that --real starts did not become ready",
    "read the log that is named; without --real the embedded cluster takes its place",
  ),
  WF_DEV_FIXTURE: user(
    "a fixture of a function cannot be used",
    "correct the file: one of `event`, `events` and `run`, and optionally `objects`, `env`, `responses` and `expect`",
  ),
  WF_DEV_SAMPLE: user("a sample in a function's folder cannot be applied", "correct the file, or remove it"),

  // deployed
  ...deployedCodes,

  // runtime
  WF_RUNTIME_NO_FUNCTION: user(
    "the runtime has no function of this name",
    "/status lists those that it has; others are in another folder, or were not deployed",
  ),
  WF_RUNTIME_PAUSED_BY_MANIFEST: user(
    "the function stays paused, because its manifest says so",
    "take `paused: true` out of its manifest's spec, or write `paused: false`; earlier commands for it no longer count",
  ),
  WF_RUNTIME_PAUSED_BY_SET: user(
    "the function stays paused, because the FunctionSet of its set says so",
    '`kubectl patch functionset SET --type=merge -p \'{"spec":{"paused":false}}\'` in its namespace; earlier commands for the function no longer count',
  ),
  WF_RUNTIME_NO_RUN: user(
    "the function has no run of this ID",
    "see `watchfire runs FUNCTION`; a schedule's run must be one of the last 200 since the runtime started",
  ),
  WF_RUNTIME_NOT_RECORDED: user(
    "the events of a function cannot be recorded",
    "run `watchfire record` again: a recording ends after 30 s without a request",
  ),
  WF_RUNTIME_NOT_REDELIVERED: user(
    "the requested event cannot be delivered again",
    "`watchfire explain FUNCTION OBJECT` shows the state of the function and of the object",
  ),
  WF_RUNTIME_WATCHES: user(
    "the manifests of all functions need more watches of the API server than allowed, and this one needs many",
    "select namespaces by matchLabels instead of their names, or remove namespaceSelector; the runtime tries again by itself",
  ),
  WF_RUNTIME_PENDING: system(
    "the request is accepted, and is not done yet",
    "it is done once it can be saved, so do not repeat it; if the runtime ends before, check first",
  ),
  WF_RUNTIME_BUSY: system(
    "too many requests are pending",
    "try again later; /readyz says why nothing is saved meanwhile",
  ),
  WF_RUNTIME_NO_ERROR_GROUP: user(
    "no failure on record is of this group",
    "the console's page of errors lists the groups; one ends with its failures, which the history has for some days",
  ),
  // history
  WF_HISTORY_BROKEN: user(
    "the history of runs cannot be written, so it is off until the next start; the functions run all the same",
    "make room on the disk, or remove the file that is named, and restart the runtime; `--history-size 0` turns the history off",
  ),
  WF_HISTORY_NEWER: user(
    "the history of runs is of a newer version of Watchfire, so it is off; the functions run all the same, and the file is not changed",
    "start the newer version again, or move the file that is named away and restart the runtime, which creates an empty one",
  ),
  // runtime
  WF_RUNTIME_STATUS_UNWRITTEN: user(
    "an object of `--function-status` cannot be written, which is retried; its function runs all the same",
    "fix the cause that the API server names; `watchfire rbac --function-status` prints the required rights",
  ),
  WF_RUNTIME_INTERNAL: system("the runtime has an internal fault", "report it with the log lines around it"),
} as const satisfies Record<string, ErrorEntry>;

/** A code of the registry. */
export type ErrorCode = keyof typeof errorCodes;

/** A position in a user's file. Line and column count from 1. */
export interface SourceLocation {
  readonly file: string;
  readonly line?: number;
  readonly column?: number;
}

/** Details of a failure in addition to its code. */
export interface FaultDetail {
  /** The failure, in lower case without a full stop. Must not contain a secret. */
  readonly what: string;
  readonly place?: SourceLocation;
  /** The path inside the document, such as `spec.triggers[0].watch.kind`. */
  readonly path?: string;
  /** The actual value. Long values are shortened. */
  readonly actual?: unknown;
  /** Replaces the code's hint with a more specific one. */
  readonly hint?: string;
  readonly cause?: unknown;
  /** Further failures found by the same check. */
  readonly more?: readonly WatchfireError[];
}

/** A failure with a code from the registry. Its `message` is the one line that a user reads. */
export class WatchfireError extends Error {
  override readonly name = "WatchfireError";
  readonly code: ErrorCode;
  readonly detail: FaultDetail;

  constructor(code: ErrorCode, detail: FaultDetail) {
    super(describeFault(code, detail), detail.cause === undefined ? undefined : { cause: detail.cause });
    this.code = code;
    this.detail = detail;
  }

  get blame(): ErrorClass {
    return errorCodes[this.code].blame;
  }

  get hint(): string {
    return this.detail.hint ?? errorCodes[this.code].hint;
  }

  /** This failure followed by all others found by the same check, as separate errors. */
  get faults(): readonly WatchfireError[] {
    const { more, ...alone } = this.detail;
    return more?.length ? [new WatchfireError(this.code, alone), ...more] : [this];
  }
}

/** Returns a place as messages show it: `function.yaml:7:5`. */
export const placeText = ({ file, line, column }: SourceLocation): string =>
  [file, line, column].filter((part) => part !== undefined).join(":");

/** Returns one line: `CODE file:line:column path: what, actual value; hint`, followed by the number of further failures. */
export function describeFault(code: ErrorCode, detail: FaultDetail): string {
  const { place, path, actual } = detail;
  const at = place ? ` ${placeText(place)}` : "";
  const inside = path ? ` ${path}` : "";
  const value = actual === undefined ? "" : `, got ${shorten(actual)}`;
  const rest = detail.more?.length ? ` (and ${detail.more.length} more, which \`watchfire validate\` lists)` : "";
  const line = `${code}${at}${inside}: ${detail.what}${value}; ${detail.hint ?? errorCodes[code].hint}${rest}`;
  // The line can contain names chosen by a handler's author, including characters that a terminal would interpret.
  return clean(line.replace(/\s*[\r\n\u2028\u2029]\s*/g, " "));
}

/** Returns the error itself if it has a code of the registry. Other errors are wrapped as WF_RUNTIME_INTERNAL. */
export const asWatchfireError = (error: unknown): WatchfireError =>
  error instanceof WatchfireError
    ? error
    : new WatchfireError("WF_RUNTIME_INTERNAL", {
        what: error instanceof Error ? error.message : String(error),
        cause: error,
      });
