import type { Mutant } from "../mutant.ts";

const dispatch = (path: string) => `runtime/dispatch/${path}.ts`;
const watch = (path: string) => `runtime/watch/${path}.ts`;
const checkpoint = (path: string) => `runtime/checkpoint/${path}.ts`;

/** Faults of delivery that fleets catch, or a test file. */
export const mutants: readonly Mutant[] = [
  {
    fault: "a first choice of no namespaces leaves no record that the function was deployed",
    file: dispatch("intake/trigger-scope"),
    edits: [["if (this.hasBegun) return;", "if (this.hasBegun || namespaces.length === 0) return;"]],
    caughtBy: "fleet",
  },
  {
    fault: "a kind that is not installed leaves no record that the function was deployed",
    file: dispatch("intake/subscription"),
    edits: [[`if (this.state.type !== "fresh" || this.listing) return;`, "return;"]],
    caughtBy: "fleet",
  },
  {
    fault: "a condition that compares is judged on a missing body as if it did not hold",
    file: dispatch("filter/filter"),
    edits: [
      [
        "return this.conditions.pieces(text, known ?",
        "if (!known) return (function* () { return unchanged; })(); return this.conditions.pieces(text, known ?",
      ],
    ],
    caughtBy: "fleet",
  },
  {
    fault: "a deletion that a list finds is judged on a missing body as if its object had not matched",
    file: dispatch("filter/filter"),
    edits: [["matched: answered = true", "matched: answered = false"]],
    caughtBy: "fleet",
  },
  {
    fault: "a dead letter that is put back takes a newer state's place in mode Latest",
    file: dispatch("queue/backlog"),
    edits: [["if (event.replayed || next.replayed) return false;", ""]],
    caughtBy: "test/dispatch/dead-letters.test.ts",
  },
  {
    fault: "where queues wait in memory, one object's backlog makes its function step aside",
    file: dispatch("queue/function-queue"),
    edits: [["if (backpressure.isShort) this.shareMemory();", ""]],
    caughtBy: "test/dispatch/hot-key.test.ts",
  },
  {
    fault: "a position passes what collapsed before the newest state has ended",
    file: dispatch("queue/backlog"),
    edits: [["  letGo(standIn);\n  standIn.mark = oldest.mark;", "  letGo(oldest);"]],
    caughtBy: "test/dispatch/hot-key.test.ts",
  },
  {
    fault: "an event on record does not say that it stands for others",
    file: dispatch("queue/backlog"),
    edits: [["spill.rewrite(standIn);", "{}"]],
    caughtBy: "test/dispatch/hot-key.test.ts",
  },
  {
    fault: "the end of an object collapses into the state of the next one of its name",
    file: dispatch("queue/backlog"),
    edits: [
      ['event.type !== "Modified" || next.type', "next.type"],
      ["event.view !== next.view || event.meta.uid !== next.meta.uid", "event.view !== next.view"],
      ['  event.type === "Modified" &&\n', ""],
    ],
    caughtBy: "test/dispatch/hot-key.test.ts",
  },
  {
    fault: "a power loss soon after a start leaves the clean end before",
    file: checkpoint("sqlite"),
    edits: [["      if (!maintenance) {\n        emptyLog(db);", "      if (maintenance) {\n        emptyLog(db);"]],
    caughtBy: "fleet",
  },
  {
    fault: "whoever comes without a position makes those list who stream",
    file: watch("source"),
    edits: [["    if (at === undefined) {\n", `    if (at === undefined) {\n      this.giveUpStreams("relist");\n`]],
    caughtBy: "fleet",
  },
  {
    fault: "whoever leaves amid its list makes those list who stream",
    file: watch("source"),
    edits: [
      ["    this.lister.leave(subscriber);", `    if (this.lister.leave(subscriber)) this.giveUpStreams("relist");`],
    ],
    caughtBy: "fleet",
  },
  {
    fault: "one whose history is gone takes those along whose is not",
    file: watch("members"),
    edits: [
      ["({ at }) => isUpTo(at, from) || !isUpTo(from, at) ||", "({ at }) => isUpTo(from, at) || isUpTo(at, from) ||"],
    ],
    caughtBy: "fleet",
  },
  {
    fault: "a list is held whole",
    file: dispatch("position/gap-diff"),
    edits: [["if (this.heldBytes > this.parts.heldLimit) this.makeRoom();", ""]],
    caughtBy: "test/dispatch/lists.test.ts",
  },
  {
    fault: "a namespace costs a look at the objects of all namespaces",
    file: dispatch("position/view"),
    edits: [[`trigger.namespaces.type === "all" ? () => "" : namespaceOf;`, `() => "";`]],
    caughtBy: "test/dispatch/many-namespaces.test.ts",
  },
  {
    fault: "all sources connect in one turn of the event loop",
    file: watch("turnstile"),
    edits: [["const perTurn = 8;", "const perTurn = 100_000;"]],
    caughtBy: "test/faults/many-sources.test.ts",
  },
  {
    fault: "an object that waits for its retry fills its function's memory",
    file: dispatch("queue/function-queue"),
    edits: [
      ["  private rest(lane: Lane): void {\n", "  private rest(lane: Lane): void {\n    if (lane.backoff) return;\n"],
    ],
    caughtBy: "fleet",
  },
  {
    fault: "a store with little room lets a first list fill the memory",
    file: dispatch("queue/backpressure"),
    edits: [["!spill.isSpent : !this.isShort", "!spill.isSpent : true"]],
    caughtBy: "test/dispatch/full.test.ts",
  },
  {
    fault: "where there is little room, a blocked object holds its source, and others with it",
    file: dispatch("queue/backpressure"),
    edits: [
      ["!spill.isSpent : !this.isShort", "!spill.isSpent : true"],
      [
        "if (!this.isWorthWaiting) return undefined;",
        "if (!this.isWorthWaiting && this.spill.holdsQueues) return undefined;",
      ],
      [
        "if (!this.quick || !isFilled) this.free();",
        "if ((!this.quick && this.spill.holdsQueues) || !isFilled) this.free();",
      ],
    ],
    caughtBy: "test/dispatch/full.test.ts",
  },
  {
    fault: "Secrets that are full refuse what only forgets",
    file: checkpoint("kubernetes"),
    edits: [["if (this.full && adds) return this.full;", "if (this.full) return this.full;"]],
    caughtBy: "test/on-cluster/checkpoint-store.test.ts",
  },
  {
    fault: "tombstones whose resourceVersions have no order stay for good",
    file: dispatch("position/view"),
    edits: [["return caughtUp ? isNewer(resourceVersion, lowWaterMark) :", "return caughtUp && false ? true :"]],
    caughtBy: "test/dispatch/opaque-versions.test.ts",
  },
  {
    fault: "a deletion that carries its object's own resourceVersion is dropped behind the mark",
    file: dispatch("intake/subscription"),
    edits: [["if (standing && endsAsItWas(standing, change)) return false;", ""]],
    caughtBy: "fleet",
  },
  {
    fault: "a deletion that carries its object's own resourceVersion is dropped in a replay",
    file: watch("members"),
    edits: [["if (!spared || isNews)", "if (!spared)"]],
    caughtBy: "test/faults/transition.test.ts",
  },
  {
    fault: "each source asks for itself how new the server is, outside of the lists' slots",
    file: watch("newest-versions"),
    edits: [["const waiting = this.questions.get(key);", "const waiting = [].at(0) as Question[] | undefined;"]],
    caughtBy: "test/faults/many-sources.test.ts",
  },
  {
    fault: "the file never shrinks",
    file: checkpoint("sqlite-upkeep"),
    edits: [["if (incremental && worth) {", "if (incremental && worth && !worth) {"]],
    caughtBy: "test/checkpoint/sqlite.test.ts",
  },
  {
    fault: "a list that is answered 410 asks for the same resourceVersion again",
    file: watch("lister"),
    edits: [["        this.unversioned = true;\n", "        this.unversioned = false;\n"]],
    caughtBy: "fleet",
  },
  {
    fault: "a refusal of an API server that starts costs half a minute",
    file: watch("backoff"),
    edits: [["forbiddenCurve: Curve = { firstMs: 1000,", "forbiddenCurve: Curve = { firstMs: 30_000,"]],
    caughtBy: "test/faults/refusal.test.ts",
  },
  {
    fault: "a list that is slower than the history is followed by another, for ever",
    file: watch("paged-list"),
    edits: [["begun: (from) => this.follow(from),", "begun: () => {},"]],
    caughtBy: "test/faults/lister.test.ts",
  },
  {
    fault: "a list is held against what came while it was read",
    file: watch("lister"),
    edits: [["floor === undefined || !isNewer(floor, at)", "!isNewer(this.parts.newest() ?? at, at)"]],
    caughtBy: "test/faults/lister.test.ts",
  },
  {
    fault: "one function's queue may fill the disk",
    file: dispatch("queue/backpressure"),
    edits: [["spill.holdsQueues ? !spill.isSpent :", "spill.holdsQueues ? true :"]],
    caughtBy: "test/dispatch/full.test.ts",
  },
  {
    fault: "a wall clock that is set ends the active replica",
    file: "runtime/lease/elector.ts",
    edits: [["return Math.abs(passed - awake) < apartMs ?", "return apartMs ?"]],
    caughtBy: "test/lease/elector.test.ts",
  },
  {
    fault: "a cluster whose identity cannot be read is passed over in silence",
    file: "runtime/app/recognise-cluster.ts",
    edits: [[`"cluster's identity unknown");`, `"");`]],
    caughtBy: "test/scenarios/restart.test.ts",
  },
  {
    fault: "a function that is removed in doubt comes back unflagged",
    file: dispatch("dispatcher"),
    edits: [["if ((await store.retiredViews()).some(isOpen)) return true;", ""]],
    caughtBy: "test/dispatch/power-loss.test.ts",
  },
  {
    fault:
      "an older state in a newer list is taken for that of a server that lags, after a restore with newer revisions",
    file: watch("lister"),
    edits: [["if (coversAll && listing.provesRewind(at))", "if (!coversAll && listing.provesRewind(at))"]],
    caughtBy: "fleet",
  },
  {
    fault: "a list that lags is taken for a proof that the cluster was restored",
    file: watch("rewind-proof"),
    edits: [["this.contradicted !== undefined && isUpTo(this.contradicted, list)", "this.contradicted !== undefined"]],
    caughtBy: "test/dispatch/restored.test.ts",
  },
  {
    fault: "of those who share the list after a rewind one keeps the state that was undone",
    file: watch("listing"),
    edits: [[`filter(({ applicant }) => applicant.reason !== "rv-rewind")`, `filter((_, index) => index > 0)`]],
    caughtBy: "test/faults/rewind.test.ts",
  },
  {
    fault: "only what is done proves a restore, and not what a handler had begun on when the process died",
    file: dispatch("intake/reading"),
    edits: [["if (known?.through) this.proof", "if (known?.through && key === undefined) this.proof"]],
    caughtBy: "test/dispatch/restored.test.ts",
  },
  {
    fault: "what is chosen again by another selector is taken for a proof that the cluster was restored",
    file: dispatch("intake/reading"),
    edits: [["const goesOn = !plan.begins && plan.rebases === undefined;", "const goesOn = true;"]],
    caughtBy: "test/dispatch/restored.test.ts",
  },
  {
    fault: "an object that a restore brings back is told under the id of its first Added",
    file: dispatch("intake/reading"),
    edits: [["this.returns || this.proof.isPossible", "this.proof.isPossible"]],
    caughtBy: "test/dispatch/restored.test.ts",
  },
  {
    fault: "what a list tells before its end is told under an id of before the restore that it proves",
    file: dispatch("intake/reading"),
    edits: [["this.returns || this.proof.isPossible", "this.returns"]],
    caughtBy: "test/laws/laws.test.ts",
  },
  {
    fault: "a cache of the state that was undone covers an event of the restored one",
    file: "runtime/reads/replica.ts",
    edits: [["if (this.listedAfter !== this.rewinds()) return false;", ""]],
    caughtBy: "test/reads/replica.test.ts",
  },
  {
    fault: "a cache counts as fresh for ever once the cluster was restored",
    file: "runtime/reads/replica.ts",
    edits: [["if (past && isReached", "if (isReached"]],
    caughtBy: "test/reads/replica.test.ts",
  },
  {
    fault: "who steps aside amid the list after a restore comes back to a position of before",
    file: dispatch("intake/subscription"),
    edits: [[`    this.leaveEpoch("rewind");\n`, ""]],
    caughtBy: "test/dispatch/rewind.test.ts",
  },
  {
    fault: "who comes while its kind is missing is not told so, and skips what is there once it is served",
    file: watch("source"),
    edits: [["if (this.kind.isAbsent) subscriber.kindIsMissing?.();", ""]],
    caughtBy: "test/faults/custom-resource.test.ts",
  },
  {
    fault: "what waits for a retry leaves memory, and the source is held up until it ends",
    file: dispatch("queue/backpressure"),
    edits: [["if (!this.quick || !isFilled) this.free();", "if (!this.quick) this.free();"]],
    caughtBy: "test/dispatch/backpressure.test.ts",
  },
  {
    fault: "an attempt that was interrupted is sought in the record of the one before",
    file: dispatch("doubt/started-before"),
    edits: [["before.row < event.row", "before.row > event.row"]],
    caughtBy: "test/dispatch/begun.test.ts",
  },
  {
    fault: "a deletion that was told goes off the record before the position is past it",
    file: dispatch("intake/subscription"),
    edits: [["if (later && !hasForgotten)", "if (later)"]],
    caughtBy: "test/dispatch/strangers.test.ts",
  },
  {
    fault: "a record takes those of others with it",
    file: dispatch("commit/open-rows"),
    edits: [["if (found.open === 0) {", "{"]],
    caughtBy: "test/dispatch/group-commit.test.ts",
  },
  {
    fault:
      "what is done counts as begun again where the name had another object since, and its record stands for others",
    file: dispatch("commit/open-rows"),
    edits: [["uidOf(each.id) !== uid", "false"]],
    caughtBy: "test/dispatch/begun.test.ts",
  },
  {
    fault: "what had begun of a function that is removed is judged without what waits on disk",
    file: dispatch("doubt/started-before"),
    edits: [[", ...(await store.retiredViews())]", "]"]],
    caughtBy: "test/dispatch/begun.test.ts",
  },
  {
    fault: "a deletion of the object before counts as the end of what had begun under its name",
    file: dispatch("doubt/started-before"),
    edits: [["if (known.deleted && known.uid !== uidOf(id)) return false;", ""]],
    caughtBy: "test/dispatch/begun.test.ts",
  },
  {
    fault: "an object is told as Added though an older state of it was",
    file: dispatch("doubt/doubted-objects"),
    edits: [[`begun: begun === "Added" ? "Modified" : begun`, "begun"]],
    caughtBy: "test/dispatch/begun.test.ts",
  },
  {
    fault: "a second restore after a power loss tells what the first one told, unflagged",
    file: dispatch("intake/subscription"),
    edits: [[`if (because === "rewind") this.aftermath.beginAgain();`, ""]],
    caughtBy: "test/dispatch/power-loss.test.ts",
  },
  {
    fault: "an object that is known passes",
    file: dispatch("position/view"),
    edits: [["!holders.has(objectKey(change.meta), this) && ", ""]],
    caughtBy: "test/dispatch/passing.test.ts",
  },
  {
    fault: "what passed is accounted for behind the change that followed it",
    file: dispatch("intake/subscription"),
    edits: [["    this.settlePassing();\n    if (!this.takes()) return;", "    if (!this.takes()) return;"]],
    caughtBy: "test/dispatch/passing.test.ts",
  },
  {
    fault: "what passed is accounted for behind the list that followed it",
    file: dispatch("intake/subscription"),
    edits: [["    this.settlePassing();\n    const { state, initial,", "    const { state, initial,"]],
    caughtBy: "test/dispatch/passing.test.ts",
  },
  {
    fault: "what passed before a bookmark takes the position back",
    file: dispatch("intake/subscription"),
    edits: [
      [`    this.settlePassing();\n    if (this.intake !== "open") return;`, `    if (this.intake !== "open") return;`],
    ],
    caughtBy: "test/dispatch/passing.test.ts",
  },
  {
    fault: "what passed before a restore ends the doubt after it",
    file: dispatch("intake/subscription"),
    edits: [["    this.settlePassing();\n    const { state, newestKnown,", "    const { state, newestKnown,"]],
    caughtBy: "test/dispatch/passing.test.ts",
  },
  {
    fault: "an event that its handler asked for again has no record where the disk has no room for it",
    file: dispatch("queue/attempts"),
    edits: [[`if (event.place !== "memory" && row !==`, "if (row !=="]],
    caughtBy: "test/laws/laws.test.ts",
  },
  {
    fault: "an event that may have been told is compared with an older record once it was on disk",
    file: dispatch("position/view"),
    edits: [[`doubt !== "none" || this.doubted`, `doubt === "unnoted" || this.doubted`]],
    caughtBy: "test/dispatch/power-loss.test.ts",
  },
  {
    fault: "an event of an object of which nothing is kept comes again after a kill as another type",
    file: dispatch("intake/subscription"),
    edits: [["const isUnkept = view.isUnkept(key);", "const isUnkept = isStranger;"]],
    caughtBy: "test/dispatch/strangers.test.ts",
  },
  {
    fault: "pause and power: what waited over a power loss is not noted as doubted",
    file: dispatch("dispatcher"),
    edits: [["    await store.doubtSpilled(name);\n", ""]],
    caughtBy: "test/laws/doubt.test.ts",
  },
  {
    fault: "pause and power: what waits in memory after a power loss keeps an end from being clean",
    file: dispatch("queue/function-queue"),
    edits: [["    this.noteDoubts();\n", ""]],
    caughtBy: "test/laws/doubt.test.ts",
  },
  {
    fault: "pause and power: a key that waited over a power loss is told unflagged after a clean end",
    file: dispatch("reconcile/reconciling"),
    edits: [["redelivered || run !== undefined", "run !== undefined"]],
    caughtBy: "test/dispatch/reconcile/power-loss.test.ts",
  },
  {
    fault: "deleted Lease: a slot is taken at once where its Lease is gone",
    file: "runtime/fleet/slots.ts",
    edits: [[" && !view.lost.has(slot)", ""]],
    caughtBy: "test/fleet/slots.test.ts",
  },
  {
    fault: "deleted Lease: a replica whose own Lease is gone gives its slots away",
    file: "runtime/fleet/slots.ts",
    edits: [["listed.has(membership.leaseIn(leases)) ? view.members : []", "view.members"]],
    caughtBy: "test/fleet/slots.test.ts",
  },
  {
    fault: "deleted Lease: a slot's Lease that is made again has lost what was written on it",
    file: "runtime/fleet/held-slot.ts",
    edits: [["{ ...record.annotations, ...change.annotations }", "{ ...change.annotations }"]],
    caughtBy: "test/fleet/slots.test.ts",
  },
];
