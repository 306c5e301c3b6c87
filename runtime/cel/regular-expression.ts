import { RE2JS } from "re2js";
import { EvaluationError, type Meter } from "./meter.ts";

/** Maximum length of a pattern, in characters. */
const longestPattern = 1000;
/** Maximum size of a program, in RE2's instructions. Also the limit of all constant patterns of an expression together. */
export const largestProgram = 2000;
/**
 * Maximum memory of one pattern's automaton, in bytes. RE2JS's default is 8 MiB, with which it is slower if states do not recur.
 */
const automatonBytes = 128 * 1024;
/** Cost of one character and one instruction. The slowest measured patterns took 60 ns, usual ones less than 1 ns. */
const perStep = 4;
/**
 * Cost of parsing a character of a pattern, which may be refused at its end, and of compiling one instruction. Measured: 0.5 and
 * 5 us.
 */
const perRead = 50;
const perInstruction = 500;

/** A pattern in RE2's syntax. Matching is linear in the text, whatever the pattern. */
export class RegularExpression {
  private readonly program: RE2JS;
  private readonly size: number;

  /**
   * `meter`: given for a pattern that an evaluation computed. Such a pattern is not shown in messages.
   * @throws EvaluationError for a pattern that RE2 refuses, and for a pattern or program beyond the limits
   */
  constructor(pattern: string, meter?: Meter) {
    if (pattern.length > longestPattern) {
      throw new EvaluationError(`a pattern has at most ${longestPattern} characters, not ${pattern.length}`);
    }
    meter?.pay(pattern.length * perRead);
    const size = sizeOf(pattern);
    if (size > largestProgram) {
      throw new EvaluationError(`the pattern's repetitions unfold to more than ${largestProgram} instructions`);
    }
    meter?.pay(size * perInstruction);
    try {
      this.program = RE2JS.compile(pattern);
    } catch (error) {
      const why = !meter && error instanceof Error ? `: ${error.message}` : "";
      throw new EvaluationError(`RE2 refuses the pattern${why}`);
    }
    this.size = this.program.programSize();
    const { dfa } = this.program.re2();
    dfa.memBudget = automatonBytes;
    dfa.stateBudget = automatonBytes;
  }

  /** True if it matches a part of the text. */
  test(meter: Meter, text: string): boolean {
    meter.pay(1 + text.length * this.size * perStep);
    return this.program.test(text);
  }

  /** Returns at most `limit` matches, from the left. Unlimited if `limit` is negative. */
  find(meter: Meter, searched: string, limit: number): string[] {
    const found: string[] = [];
    const matcher = this.program.matcher(searched);
    let from = 0;
    while (found.length !== limit) {
      // Each search may read to the end, as for `a.*b|a` on a long run of `a`.
      meter.pay(10 + (searched.length - from) * this.size * perStep);
      if (!matcher.find()) break;
      const text = matcher.group() ?? "";
      // Go skips an empty match directly after another match.
      if (text !== "" || found.length === 0 || matcher.start() !== from) found.push(text);
      from = matcher.end();
    }
    return found;
  }
}

/** Estimates the number of instructions of a pattern's program, at least half of it. RE2 only knows it after compiling. */
export function sizeOf(pattern: string): number {
  const outer: number[] = [];
  let sum = 0;
  let atom = 0;
  const add = (size: number): void => {
    sum += atom;
    atom = size;
  };
  // An unterminated token, such as a class, extends to the end of the pattern. If each possible start were tried separately, this
  // would be quadratic.
  const tokens = pattern.matchAll(
    /\\Q[\s\S]*?(?:\\E|$)|\\[pP]\{[^}]*(?:\}|$)|\\[\s\S]|\[\^?\]?(?:\\[\s\S]|\[:\^?\w+:\]|[^\]\\])*(?:\]|\\?$)|\{(\d+)(,?)(\d*)\}|[\s\S]/g,
  );
  for (const [token, least, , most] of tokens) {
    if (least !== undefined) {
      atom *= Math.max(1, Number(least), Number(most || 0));
    } else if (token === "(") {
      add(0);
      outer.push(sum);
      sum = 0;
    } else if (token === ")" && outer.length > 0) {
      const group = sum + atom + 2;
      sum = outer.pop() ?? 0;
      atom = group;
    } else if (token === "*" || token === "+" || token === "?" || token === "|") {
      atom += 1;
    } else {
      add(token.startsWith("\\Q") ? token.length : 1);
    }
    if (sum + atom > largestProgram) return Number.POSITIVE_INFINITY;
  }
  return outer.reduce((total, size) => total + size, sum + atom);
}
