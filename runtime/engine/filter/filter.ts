import type { SourceLocation } from "../../base/errors.ts";
import type { ObjectMembers } from "../../informer/scan/change.ts";
import type { EventType, Trigger } from "../../manifest/function.ts";
import type { LoopAccount } from "../account/loop-time.ts";
import { FieldsDigest } from "./changed-fields.ts";
import { type ConditionError, type Hearing, MatchConditions } from "./conditions.ts";
import { isMetadataAlone } from "./named-fields.ts";
import type { ObjectText } from "./raw-fields.ts";
import { type HeldBack, notAsked, refusedBefore, unchanged } from "./reason.ts";

/** The recorded state of an object before the change that is judged. */
export interface PreviousState {
  /** The digest of the changed fields; `undefined` if the object was unknown, or of another version of its kind. */
  readonly hash: string | undefined;
  /** The conditions' last answer; `undefined` if the object was unknown, or other conditions were evaluated. */
  readonly matched: boolean | undefined;
  /** Whether a handler may have received a later state than the recorded one. */
  readonly possiblyOutdated: boolean;
}

export interface Verdict {
  /** Whether the handler receives the event. */
  readonly deliver: boolean;
  /** Why it does not; `undefined` if it does. */
  readonly heldBack: HeldBack | undefined;
  /** The digest and the answer to store with the object. */
  readonly hash: string;
  readonly matched: boolean;
}

/** A change with its inputs. `oldBody`, `members` and `hearing` are given if they are available. */
type Judged = [
  type: EventType,
  body: Buffer,
  before: PreviousState,
  oldBody: Buffer | undefined,
  members?: ObjectMembers | undefined,
  hearing?: Hearing,
];

/** The part of a trigger that a filter is built from. */
export type FilterRules = Pick<Trigger, "events" | "changedFields" | "matchConditions" | "lastBody">;

/**
 * The filters of one trigger. A body is parsed only if a rule needs it, and only in the fields that the conditions name. It is
 * not parsed if the bytes of its changed fields were seen before. An object that matched and no longer does is filtered like any
 * other: conditions choose events, selectors choose objects.
 */
export class Filter {
  /** Whether a verdict needs the object's previous body. */
  readonly needsOldBody: boolean;
  /** Whether a verdict depends on the object's new state alone, and both Added and Modified are wanted. */
  readonly judgesAlone: boolean;
  private readonly rules: FilterRules;
  /** Computes the digest of the changed fields; `undefined` if no fields are named. */
  private readonly digest: FieldsDigest | undefined;
  /** Whether a Deleted may have to be judged by the conditions' last answer: its last body may be stored in part, or lost. */
  private readonly remembersMatch: boolean;
  private readonly conditions: MatchConditions;
  private readonly hearing: Hearing;
  private readonly account: LoopAccount | undefined;
  /**
   * Whether the last judgement took more than one piece of work. Then no judgement is started where only one is allowed. Written
   * here only.
   */
  isLong = false;

  /**
   * Builds a trigger's filter.
   * @param onError called for a condition that cannot be evaluated
   * @param place the location that errors name
   * @param account is charged for the time that judging takes
   * @throws WatchfireError at `place` for a condition that does not compile
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

  /** Whether a digest is of other fields, so that the previous body is needed, if it is stored whole. */
  isOutdated(hash: string): boolean {
    return this.digest !== undefined && this.rules.lastBody === "Full" && !this.digest.made(hash);
  }

  /** Whether cheap checks of an object's state may show that it does not concern the function, whatever changed. */
  get demands(): boolean {
    return this.judgesAlone && this.conditions.lacking !== undefined;
  }

  /** The field that must have a certain text, that text, and a function that reads it; `undefined` if there is no such field. */
  get demanded() {
    return this.conditions.demanded;
  }

  /** Whether an object lacks the required text. */
  isLacking(text: ObjectText): boolean {
    return this.conditions.plainRefusal(text) !== undefined;
  }

  /** Why a change of such an object is held back. */
  lacking(type: EventType): HeldBack {
    return ((type !== "Deleted" || this.remembersMatch) && this.conditions.lacking) || notAsked;
  }

  /** Returns the condition that a cheap check shows to be false; `undefined` if the conditions must be evaluated. */
  plainRefusal(type: EventType, text: ObjectText): HeldBack | undefined {
    return type !== "Deleted" || this.remembersMatch ? this.conditions.plainRefusal(text) : undefined;
  }

  /**
   * Returns the verdict on a change that was received with its body.
   *
   * `oldBody` is the previous body, if it is needed and stored; `members` are the byte ranges of the object's members, if known;
   * `hearing` replaces the callbacks of the constructor.
   */
  judge(...change: Judged): Verdict {
    return this.asksNothing(change[0]) ?? this.whole(this.pieces(...change));
  }

  /**
   * Same as `judge` if one piece of work is enough. Otherwise returns `undefined` without calling any callback; judge it again.
   */
  judgeAtOnce(...change: Judged): Verdict | undefined {
    return this.asksNothing(change[0]) ?? (this.isLong ? undefined : this.piece(this.pieces(...change)));
  }

  /** Same as `judge`, as a generator for `inPieces`. */
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
   * Returns the verdict on a Deleted that a list found, as a generator for `inPieces`. `lastBody` is the last stored one. If it
   * is gone, or is metadata alone, the conditions' last answer decides; without an answer, the deletion is delivered.
   */
  *deletionPieces(lastBody: Buffer | undefined, before: PreviousState): Generator<undefined, Verdict, undefined> {
    const wanted = this.rules.events.includes("Deleted");
    const { matched: answered = true, possiblyOutdated } = before;
    const isJudged = this.conditions.count > 0 && lastBody && !possiblyOutdated;
    const isWhole = isJudged && !isMetadataAlone(JSON.parse(lastBody.toString()));
    const last = answered ? undefined : refusedBefore;
    const refusal = isWhole ? yield* this.refusal("Deleted", { body: lastBody }, before, lastBody, this.hearing) : last;
    return verdict(wanted ? refusal : notAsked, "", refusal === undefined);
  }

  /** Runs `pieces` to its verdict. Awaits `admitted` between two of them. */
  async inPieces(pieces: Generator<undefined, Verdict, undefined>, admitted: () => Promise<void>): Promise<Verdict> {
    for (;;) {
      const verdict = this.piece(pieces);
      if (verdict) return verdict;
      await admitted();
    }
  }

  /**
   * Runs the next piece of judging, and charges its time. Returns `undefined` if there is more to do. A body that cannot be
   * judged is delivered: losing an event is worse.
   */
  private piece(pieces: Generator<undefined, Verdict, undefined>): Verdict | undefined {
    const began = this.account?.begin();
    try {
      const { done, value } = pieces.next();
      this.isLong = !done;
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

  /** Returns the verdict if it does not depend on the body. */
  private asksNothing(type: EventType): Verdict | undefined {
    if (this.digest || this.isConditional(type)) return undefined;
    return verdict(this.rules.events.includes(type) ? undefined : notAsked, "", true);
  }

  private isConditional(type: EventType): boolean {
    return this.conditions.count > 0 && (this.rules.events.includes(type) || this.remembersMatch);
  }

  private hashBefore({ hash, possiblyOutdated }: PreviousState, oldBody: Buffer | undefined): string | undefined {
    if (possiblyOutdated || hash === undefined || !this.isOutdated(hash)) return hash;
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
    // The previous state is unknown, so conditions that compare with it do not hold the event back.
    const known = !this.needsOldBody || (!before.possiblyOutdated && oldBody !== undefined);
    return this.conditions.pieces(text, known ? (oldBody ?? "none") : undefined, hearing);
  }
}

const verdict = (heldBack: HeldBack | undefined, hash: string, matched: boolean): Verdict => ({
  deliver: heldBack === undefined,
  heldBack,
  hash,
  matched,
});
