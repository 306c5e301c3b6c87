import { TypeError as CelTypeError, ParseError } from "@marcbachmann/cel-js";

/** Why an expression does not compile, in words, with the character that it is about, from 1. */
export class ExpressionError extends Error {
  override readonly name = "ExpressionError";
  readonly code: "WF_FILTER_CONDITION_SYNTAX" | "WF_FILTER_CONDITION_TYPE";
  /** The message as the parser or the type checker has it, without the character. */
  readonly detail: string;
  /** Offset of the character in the expression. */
  readonly at: number | undefined;

  constructor(code: ExpressionError["code"], message: string, at?: number, detail = message) {
    super(at === undefined ? message : `${message} at character ${at + 1}`);
    this.code = code;
    this.detail = detail;
    this.at = at;
  }

  /** What the parser or the type checker threw. */
  static from(code: ExpressionError["code"], error: unknown): ExpressionError {
    const at = error instanceof ParseError || error instanceof CelTypeError ? error.range?.start : undefined;
    const detail = firstLine(error);
    return new ExpressionError(code, `does not compile: ${asPart(detail)}`, at, detail);
  }
}

export const firstLine = (error: unknown): string =>
  ((error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "").trim();

/** A sentence as part of another: no full stop, and a small first letter unless the word has its own form (`API`). */
const asPart = (sentence: string): string =>
  sentence.replace(/\.$/, "").replace(/^[A-Z](?![A-Za-z]*[A-Z])/, (first) => first.toLowerCase());
