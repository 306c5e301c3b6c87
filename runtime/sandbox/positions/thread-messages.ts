import type { SourceLocation } from "../../base/errors.ts";

/**
 * A question to a source map: rewrite a text or the strings of a JSON text, find a stack's place, or find the handler's place.
 */
export interface MapQuestion {
  readonly kind: "text" | "json" | "place" | "entry";
  /** Empty for `entry`. */
  readonly text: string;
}

/** A request to the thread. It answers each one before it reads the next. */
export interface ThreadRequest extends MapQuestion {
  /** The map's number. */
  readonly map: number;
  /** The map's text, if the thread does not hold the map. */
  readonly source?: string;
  /** Numbers of maps to release. */
  readonly forget: readonly number[];
}

/** An answer; `unreadable` if the text is not a source map. */
export type ThreadReply =
  | { readonly unreadable: true }
  | {
      readonly unreadable: false;
      /** The rewritten text for `text` and `json`, else empty. */
      readonly text: string;
      readonly place: SourceLocation | undefined;
      /** Bytes that the map takes. */
      readonly bytes: number;
    };
