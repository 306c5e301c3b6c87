import type { Place } from "../../errors.ts";
import type { ChangeType, Trigger } from "../../manifest/function.ts";
import type { ObjectMembers } from "../../watch/object-members.ts";
import { FieldsDigest } from "./changed-fields.ts";
import { type ConditionError, MatchConditions } from "./conditions.ts";
import { isMetadataAlone } from "./previous-object.ts";
import type { ObjectText } from "./raw-fields.ts";

/** What is known of the object before the change that is judged. */
export interface Before {
  /** Digest of the changed fields; undefined where the object was unknown. */
  readonly hash: string | undefined;
  /** Its conditions' answer then; undefined where the object was unknown. */
  readonly matched: boolean | undefined;
  /** A handler may have been told of a later state than what is known. */
  readonly doubted: boolean;
}

export interface Verdict {
  /** Whether the handler is to see the change. */
  readonly deliver: boolean;
  /** To be kept with the object. */
  readonly hash: string;
  readonly matched: boolean;
}

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
  private readonly rules: FilterRules;
  /** Of the changed fields; undefined where none are named. */
  private readonly digest: FieldsDigest | undefined;
  /** Whether a Deleted may have to be judged by the conditions' last answer: its last body may be kept in part, or lost. */
  private readonly remembersMatch: boolean;
  private readonly conditions: MatchConditions;
  private readonly onError: (error: ConditionError) => void;

  /** Throws a fault at `place` for a condition that does not compile. `onError` hears of one that cannot be evaluated. */
  constructor(rules: FilterRules, onError: (error: ConditionError) => void = () => {}, place?: Place) {
    this.rules = rules;
    if (rules.changedFields.length > 0) this.digest = new FieldsDigest(rules.changedFields);
    this.conditions = new MatchConditions(rules.matchConditions, place);
    this.needsOldBody = this.conditions.usesOldObject;
    this.remembersMatch = rules.events.includes("Deleted");
    this.onError = onError;
  }

  /** Whether a digest says nothing, because it is of other fields: then the previous body is needed, if it is kept whole. */
  isOutdated(hash: string): boolean {
    return this.digest !== undefined && this.rules.lastBody === "Full" && !this.digest.made(hash);
  }

  /**
   * The verdict on a change that was received with its body. `oldBody`: the previous one, where it is needed and kept.
   * `members`: where those of the object are in `body`, where that is known.
   */
  judge(type: ChangeType, body: Buffer, before: Before, oldBody: Buffer | undefined, members?: ObjectMembers): Verdict {
    const wanted = this.rules.events.includes(type);
    const { digest } = this;
    const conditional = this.conditions.count > 0 && (wanted || this.remembersMatch);
    if (!digest && !conditional) return { deliver: wanted, hash: "", matched: true };
    const hash = digest?.ofBytes(body, members) ?? "";
    const unchanged = type === "Modified" && digest !== undefined && this.hashBefore(before, oldBody) === hash;
    const matched = !conditional || this.matches(type, { body, members }, before, oldBody);
    return { deliver: wanted && !unchanged && matched, hash, matched };
  }

  /**
   * The verdict on a Deleted that a list found. `lastBody`: the last one kept. Where it is gone, or is metadata alone, the
   * conditions' last answer decides; where there is none either, the deletion is told.
   */
  judgeDeletion(lastBody: Buffer | undefined, before: Before): Verdict {
    const wanted = this.rules.events.includes("Deleted");
    const { matched: answered = true } = before;
    const isJudged = this.conditions.count > 0 && lastBody && before.matched !== undefined;
    const isWhole = isJudged && !isMetadataAlone(JSON.parse(lastBody.toString()));
    const matched = isWhole ? this.matches("Deleted", { body: lastBody }, before, lastBody) : answered;
    return { deliver: wanted && matched, hash: "", matched };
  }

  private hashBefore({ hash, doubted }: Before, oldBody: Buffer | undefined): string | undefined {
    if (doubted || hash === undefined || !this.isOutdated(hash)) return hash;
    return oldBody && this.digest?.ofBytes(oldBody);
  }

  private matches(type: ChangeType, text: ObjectText, before: Before, oldBody: Buffer | undefined): boolean {
    if (type === "Added") return this.conditions.match(text, "none", this.onError);
    // What it should be compared with is not known: what compares does not keep it from being told.
    const known = !this.needsOldBody || (!before.doubted && oldBody !== undefined);
    return this.conditions.match(text, known ? (oldBody ?? "none") : undefined, this.onError);
  }
}
