import type { SourceLocation } from "../../base/errors.ts";
import type { Bundle } from "../../bundle/bundle.ts";
import { appliedMapLimit } from "../../bundle/limits.ts";
import type { MappedText, MappingThread, MapSource, Refusal } from "./mapping-thread.ts";
import { mappedPerSecond } from "./question-queue.ts";
import { mayHoldFrames, rewriteStrings, unmappedText } from "./stack-text.ts";
import type { MapQuestion } from "./thread-messages.ts";

const reasons: Readonly<Record<Refusal, string>> = {
  rate: `no more than ${mappedPerSecond} stacks of a function are mapped each second`,
  late: "its source map was not read in time",
  unreadable: "its source map cannot be read",
};

/**
 * Maps the stacks of one version of a function to the author's files. The map is read on another thread. A text without a frame
 * of that version's bundle is returned synchronously. A text that cannot be mapped keeps the bundle's positions and says why.
 */
export class StackMapper {
  private readonly source: MapSource;
  private readonly thread: Pick<MappingThread, "ask">;
  /** Cached, because each attempt that a limit ended reports it. */
  private begins: { readonly place: SourceLocation | undefined } | undefined;

  constructor(
    functionName: string,
    bundle: Pick<Bundle, "sourceMap" | "sourceMapLength">,
    thread: Pick<MappingThread, "ask">,
  ) {
    this.source = { function: functionName, bundle };
    this.thread = thread;
  }

  /** Rewrites a stack, or a text that may contain one: its frames become those of the author's code. */
  map(text: string): string | Promise<string> {
    return this.rewritten("text", text, (value, why) => unmappedText(value, why));
  }

  /** Rewrites each string of a JSON text in the same way. A text that is not JSON is returned unchanged. */
  mapJson(text: string): string | Promise<string> {
    const unmapped = (json: string, why: string) => rewriteStrings(json, (value) => unmappedText(value, why));
    return this.rewritten("json", text, unmapped);
  }

  /** Resolves to the place of the topmost frame in the author's code, or `undefined` if it is not known. */
  async place(stack: string): Promise<SourceLocation | undefined> {
    return mayHoldFrames(stack) ? placeOf(await this.ask({ kind: "place", text: stack })) : undefined;
  }

  /** Resolves to the place where the handler begins: the line of its file with the default export, else the file's first line. */
  async entry(): Promise<SourceLocation | undefined> {
    if (this.begins) return this.begins.place;
    const answer = await this.ask({ kind: "entry", text: "" });
    if (typeof answer !== "string") this.begins = { place: answer.place };
    return placeOf(answer);
  }

  private rewritten(
    kind: "text" | "json",
    text: string,
    unmapped: (text: string, why: string) => string,
  ): string | Promise<string> {
    if (!mayHoldFrames(text)) return text;
    const answer = this.ask({ kind, text });
    const shown = (reported: MappedText | string) =>
      typeof reported === "string" ? unmapped(text, reported) : reported.text;
    return answer instanceof Promise ? answer.then(shown) : shown(answer);
  }

  /** Returns the map's answer, or the reason why there is no answer. */
  private ask(question: MapQuestion): Promise<MappedText | string> | string {
    const length = this.source.bundle.sourceMapLength;
    if (length === 0) return "it has no source map";
    if (length > appliedMapLimit)
      return `its source map has ${mib(length)} MiB, and ${mib(appliedMapLimit)} MiB are read at most`;
    const answer = this.thread.ask(this.source, question);
    return answer instanceof Promise ? answer.then(wordsOf) : reasons[answer];
  }
}

const wordsOf = (answer: MappedText | Refusal): MappedText | string =>
  typeof answer === "string" ? reasons[answer] : answer;

const placeOf = (answer: MappedText | string): SourceLocation | undefined =>
  typeof answer === "string" ? undefined : answer.place;

/** Rounded up, so that a size above the limit also reads as larger. */
const mib = (length: number): string => `${Math.ceil((length / 2 ** 20) * 10) / 10}`;
