import { RE2JS } from "re2js";
import { EvaluationError, type Meter } from "./meter.ts";

/** Longest pattern, in characters, that is compiled. */
const longestPattern = 1000;
/** Largest program, in RE2's instructions; also of all constant patterns of an expression together. */
export const largestProgram = 2000;
/** Bytes that one pattern's automaton may keep. RE2JS has 8 MiB, and is slower with it where states do not come again. */
const automatonBytes = 128 * 1024;
/** Cost of one character by one instruction: the slowest patterns measured took 60 ns, the usual ones below 1 ns. */
const perStep = 4;
/**
 * Cost of reading a character of a pattern, which may be refused at its end, and of compiling one instruction. 0.5 and
 * 5 us were measured.
 */
const perRead = 50;
const perInstruction = 500;

/** A pattern in RE2's syntax: its time is linear in the text, whatever the pattern. */
export class RegularExpression {
  private readonly program: RE2JS;
  private readonly size: number;

  /**
   * With a meter, the pattern is one that an evaluation computed: no message tells of it.
   *
   * @throws EvaluationError for what RE2 refuses, and for a pattern or program beyond the limits
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

  /** Whether it matches a part of the text. */
  test(meter: Meter, text: string): boolean {
    meter.pay(1 + text.length * this.size * perStep);
    return this.program.test(text);
  }

  /** The matches from the left, at most so many; without limit below 0. */
  find(meter: Meter, searched: string, limit: number): string[] {
    const found: string[] = [];
    const matcher = this.program.matcher(searched);
    let from = 0;
    while (found.length !== limit) {
      // Each search may read to the end, as for `a.*b|a` over many an `a`.
      meter.pay(10 + (searched.length - from) * this.size * perStep);
      if (!matcher.find()) break;
      const text = matcher.group() ?? "";
      // Go leaves out an empty match right behind another match.
      if (text !== "" || found.length === 0 || matcher.start() !== from) found.push(text);
      from = matcher.end();
    }
    return found;
  }
}

/** About the instructions of a pattern's program, at least half of them: RE2 tells only after it has made them. */
export function sizeOf(pattern: string): number {
  const outer: number[] = [];
  let sum = 0;
  let atom = 0;
  const add = (size: number): void => {
    sum += atom;
    atom = size;
  };
  // What has no end, such as a class, goes to the pattern's: were each of its beginnings tried alone, it would be quadratic.
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
