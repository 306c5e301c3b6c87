import type { SourceLocation } from "../../base/errors.ts";

/** What a source map is asked: to rewrite a text or the strings of a JSON text, for a stack's place, or for the handler's. */
export interface MapQuestion {
  readonly kind: "text" | "json" | "place" | "entry";
  /** Empty for `entry`. */
  readonly text: string;
}

/** What the thread is sent. It answers each before it reads the next. */
export interface ThreadRequest extends MapQuestion {
  /** The map's number. */
  readonly map: number;
  /** The map's text, for a map that the thread does not hold. */
  readonly source?: string;
  /** Numbers of maps that it is to keep no longer. */
  readonly forget: readonly number[];
}

/** An answer; `unreadable` if the map is none. */
export type ThreadReply =
  | { readonly unreadable: true }
  | {
      readonly unreadable: false;
      /** The text, for `text` and `json`; else empty. */
      readonly text: string;
      readonly place: SourceLocation | undefined;
      /** Bytes that the map takes. */
      readonly bytes: number;
    };
