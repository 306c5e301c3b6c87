// Door: what an answer is made from.

import type { ObjectReport } from "../../engine/object-report.ts";
import type { SourceStatus } from "../../informer/fanout/observer.ts";
import type { DeadLetterSummary } from "../../journal/batch.ts";
import type { Trigger } from "../../manifest/function.ts";
import type { LiveObject } from "./live-look.ts";

/** All that is known of one object under one trigger. */
export interface ObjectFacts {
  readonly trigger: Trigger;
  readonly namespace: string;
  readonly name: string;
  readonly live: LiveObject;
  readonly report: ObjectReport;
  /** The source of the object's namespace; undefined where there is none. */
  readonly source: SourceStatus | undefined;
  /** The object's, newest first. */
  readonly letters: readonly DeadLetterSummary[];
  /** Why the function does not run as it should, where that is no matter of one source. */
  readonly trouble: string | undefined;
  /** Makes a text fit to be shown: cut, and without the function's secrets. */
  readonly show: (text: string) => string;
}
