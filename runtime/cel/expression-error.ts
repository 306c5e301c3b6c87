import { TypeError as CelTypeError, ParseError } from "@marcbachmann/cel-js";

/** The reason why an expression does not compile, with the position of the character, counted from 1. */
export class ExpressionError extends Error {
  override readonly name = "ExpressionError";
  readonly code: "WF_FILTER_CONDITION_SYNTAX" | "WF_FILTER_CONDITION_TYPE";
  /** The parser's or type checker's message, without the position. */
  readonly detail: string;
  /** Offset of the character in the expression. */
  readonly at: number | undefined;

  constructor(code: ExpressionError["code"], message: string, at?: number, detail = message) {
    super(at === undefined ? message : `${message} at character ${at + 1}`);
    this.code = code;
    this.detail = detail;
    this.at = at;
  }

  /** Converts an error of the parser or the type checker. */
  static from(code: ExpressionError["code"], error: unknown): ExpressionError {
    const at = error instanceof ParseError || error instanceof CelTypeError ? error.range?.start : undefined;
    const detail = firstLine(error);
    return new ExpressionError(code, `does not compile: ${asPart(detail)}`, at, detail);
  }
}

export const firstLine = (error: unknown): string =>
  ((error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "").trim();

/**
 * Returns a sentence as part of another: without full stop, and with a lower-case first letter unless the word is an acronym
 * (`API`).
 */
const asPart = (sentence: string): string =>
  sentence.replace(/\.$/, "").replace(/^[A-Z](?![A-Za-z]*[A-Z])/, (first) => first.toLowerCase());
