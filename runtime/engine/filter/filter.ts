import type { SourceLocation } from "../../base/errors.ts";
import type { ObjectMembers } from "../../informer/scan/change.ts";
import type { EventType, Trigger } from "../../manifest/function.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import { FieldsDigest } from "./changed-fields.ts";
import { type ConditionError, type Hearing, MatchConditions } from "./conditions.ts";
import { isMetadataAlone } from "./previous-object.ts";
import type { ObjectText } from "./raw-fields.ts";
import { type HeldBack, notAsked, refusedBefore, unchanged } from "./reason.ts";

/** What is known of the object before the change that is judged. */
export interface PreviousState {
  /** Digest of the changed fields; undefined where the object was unknown, or of another version of its kind. */
  readonly hash: string | undefined;
  /** Its conditions' answer then; undefined where the object was unknown, or other conditions answered. */
  readonly matched: boolean | undefined;
  /** A handler may have been told of a later state than what is known. */
  readonly doubted: boolean;
}

export interface Verdict {
  /** Whether the handler is to see the change. */
  readonly deliver: boolean;
  /** Why it is not; undefined where it is. */
  readonly heldBack: HeldBack | undefined;
  /** To be kept with the object. */
  readonly hash: string;
  readonly matched: boolean;
}

/** A change, its body, what was known before, and where they are at hand the old body, the object's members, and who hears. */
type Judged = [
  type: EventType,
  body: Buffer,
  before: PreviousState,
  oldBody: Buffer | undefined,
  members?: ObjectMembers | undefined,
  hearing?: Hearing,
];

/** The part of a trigger that a filter is made from. */
export type FilterRules = Pick<Trigger, "events" | "changedFields" | "matchConditions" | "lastBody">;

/**
 * One trigger's filters. A body is parsed only where a rule needs it, in the fields that its conditions name. It is not
 * parsed where its changed fields have bytes that were seen before. An object that matched and no longer does is
 * filtered out like any other: conditions choose events, selectors choose objects.
 */
export class Filter {
  /** Whether a verdict needs the object's previous body. */
  readonly needsOldBody: boolean;
  /** Whether a change is judged by its object's state alone, and each one that comes to match is wanted. */
  readonly judgesAlone: boolean;
  private readonly rules: FilterRules;
  /** Of the changed fields; undefined where none are named. */
  private readonly digest: FieldsDigest | undefined;
  /** Whether a Deleted may have to be judged by the conditions' last answer: its last body may be kept in part, or lost. */
  private readonly remembersMatch: boolean;
  private readonly conditions: MatchConditions;
  private readonly hearing: Hearing;
  private readonly account: LoopAccount | undefined;
  private tookPieces = false;

  /**
   * Throws a fault at `place` for a condition that does not compile. `onError` hears of one that cannot be evaluated. What
   * judging takes goes on `account`.
   */
  constructor(
    rules: FilterRules,
    onError: (error: ConditionError) => void = () => {},
    place?: SourceLocation,
    account?: LoopAccount,
  ) {
    this.rules = rules;
    this.account = account;
    if (rules.changedFields.length > 0) this.digest = new FieldsDigest(rules.changedFields);
    this.conditions = new MatchConditions(rules.matchConditions, place);
    this.needsOldBody = this.conditions.usesOldObject;
    const isWanted = rules.events.includes("Added") && rules.events.includes("Modified");
    this.judgesAlone = this.conditions.count > 0 && !this.needsOldBody && !this.digest && isWanted;
    this.remembersMatch = rules.events.includes("Deleted");
    this.hearing = { onError };
    if (this.digest || this.conditions.count > 0) account?.measures();
  }

  /** Whether a digest says nothing, because it is of other fields: then the previous body is needed, if it is kept whole. */
  isOutdated(hash: string): boolean {
    return this.digest !== undefined && this.rules.lastBody === "Full" && !this.digest.made(hash);
  }

  /** Whether a quick look at an object's state may tell that it is no concern, whatever changed. */
  get demands(): boolean {
    return this.judgesAlone && this.conditions.lacking !== undefined;
  }

  /** The field of which a text is demanded, that text, and what stands there in an object; undefined where nothing is. */
  get demanded() {
    return this.conditions.demanded;
  }

  /** Whether an object lacks what is demanded. */
  isLacking(text: ObjectText): boolean {
    return this.conditions.plainRefusal(text) !== undefined;
  }

  /** Why a change of such an object is held back. */
  lacking(type: EventType): HeldBack {
    return ((type !== "Deleted" || this.remembersMatch) && this.conditions.lacking) || notAsked;
  }

  /** The condition that a quick look shows to be false, of one that judges alone; undefined where more is to be asked. */
  plainRefusal(type: EventType, text: ObjectText): HeldBack | undefined {
    return type !== "Deleted" || this.remembersMatch ? this.conditions.plainRefusal(text) : undefined;
  }

  /** Whether judging took more than one piece when it was done last: then it is not begun where only one may be. */
  get isLong(): boolean {
    return this.tookPieces;
  }

  /**
   * The verdict on a change that was received with its body. `oldBody`: the previous one, where it is needed and kept.
   * `members`: where those of the object are in `body`, where that is known. `hearing`: who hears of the conditions, in
   * the place of the one that the filter was made with.
   */
  judge(...change: Judged): Verdict {
    return this.asksNothing(change[0]) ?? this.whole(this.pieces(...change));
  }

  /** The same where one piece of judging is enough. Else undefined: it is to be judged anew, and nobody has heard of it. */
  judgeAtOnce(...change: Judged): Verdict | undefined {
    return this.asksNothing(change[0]) ?? (this.isLong ? undefined : this.piece(this.pieces(...change)));
  }

  /** The same, for `inPieces`. */
  *pieces(
    ...[type, body, before, oldBody, members, hearing = this.hearing]: Judged
  ): Generator<undefined, Verdict, undefined> {
    const wanted = this.rules.events.includes(type);
    const { digest } = this;
    const hash = digest?.ofBytes(body, members) ?? "";
    const isSame = type === "Modified" && digest !== undefined && this.hashBefore(before, oldBody) === hash;
    const refusal = this.isConditional(type)
      ? yield* this.refusal(type, { body, members }, before, oldBody, hearing)
      : undefined;
    return verdict(wanted ? (isSame ? unchanged : refusal) : notAsked, hash, refusal === undefined);
  }

  /**
   * The verdict on a Deleted that a list found, for `inPieces`. `lastBody`: the last one kept. Where it is gone, or is
   * metadata alone, the conditions' last answer decides; where there is none either, the deletion is told.
   */
  *deletionPieces(lastBody: Buffer | undefined, before: PreviousState): Generator<undefined, Verdict, undefined> {
    const wanted = this.rules.events.includes("Deleted");
    const { matched: answered = true, doubted } = before;
    const isJudged = this.conditions.count > 0 && lastBody && !doubted;
    const isWhole = isJudged && !isMetadataAlone(JSON.parse(lastBody.toString()));
    const last = answered ? undefined : refusedBefore;
    const refusal = isWhole ? yield* this.refusal("Deleted", { body: lastBody }, before, lastBody, this.hearing) : last;
    return verdict(wanted ? refusal : notAsked, "", refusal === undefined);
  }

  /** The verdict that `pieces` come to. Between two of them `admitted` says when the next one may be done. */
  async inPieces(pieces: Generator<undefined, Verdict, undefined>, admitted: () => Promise<void>): Promise<Verdict> {
    for (;;) {
      const verdict = this.piece(pieces);
      if (verdict) return verdict;
      await admitted();
    }
  }

  /**
   * Does the next piece of judging, whose time goes on the account. Undefined where there is more to do. A body that cannot be
   * judged is delivered: losing an event is worse.
   */
  private piece(pieces: Generator<undefined, Verdict, undefined>): Verdict | undefined {
    const began = this.account?.begin();
    try {
      const { done, value } = pieces.next();
      this.tookPieces = !done;
      return done ? value : undefined;
    } catch {
      return verdict(undefined, "", true);
    } finally {
      if (began !== undefined) this.account?.end("conditions", began);
    }
  }

  private whole(pieces: Generator<undefined, Verdict, undefined>): Verdict {
    for (;;) {
      const verdict = this.piece(pieces);
      if (verdict) return verdict;
    }
  }

  /** The verdict where nothing is to be looked at for it. */
  private asksNothing(type: EventType): Verdict | undefined {
    if (this.digest || this.isConditional(type)) return undefined;
    return verdict(this.rules.events.includes(type) ? undefined : notAsked, "", true);
  }

  private isConditional(type: EventType): boolean {
    return this.conditions.count > 0 && (this.rules.events.includes(type) || this.remembersMatch);
  }

  private hashBefore({ hash, doubted }: PreviousState, oldBody: Buffer | undefined): string | undefined {
    if (doubted || hash === undefined || !this.isOutdated(hash)) return hash;
    return oldBody && this.digest?.ofBytes(oldBody);
  }

  private refusal(
    type: EventType,
    text: ObjectText,
    before: PreviousState,
    oldBody: Buffer | undefined,
    hearing: Hearing,
  ): Generator<undefined, HeldBack | undefined> {
    if (type === "Added") return this.conditions.pieces(text, "none", hearing);
    // What it should be compared with is not known: what compares does not keep it from being told.
    const known = !this.needsOldBody || (!before.doubted && oldBody !== undefined);
    return this.conditions.pieces(text, known ? (oldBody ?? "none") : undefined, hearing);
  }
}

const verdict = (heldBack: HeldBack | undefined, hash: string, matched: boolean): Verdict => ({
  deliver: heldBack === undefined,
  heldBack,
  hash,
  matched,
});
