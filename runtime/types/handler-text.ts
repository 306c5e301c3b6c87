/** A call of `ctx.kube` whose apiVersion and kind are written in place. */
export interface LiteralCall {
  /** Name of the method. */
  readonly method: string;
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly line: number;
  readonly column: number;
}

/** One trigger's type in `Triggers<{ … }>`. */
export interface TriggerType {
  readonly trigger: string;
  /** Name of the type, without its arguments. */
  readonly type: string;
  readonly line: number;
  readonly column: number;
}

const comment = /\/\*[\s\S]*?(?:\*\/|$)|\/\/[^\n]*/;
const text = /"(?:\\.|[^"\\\n])*["\n]?|'(?:\\.|[^'\\\n])*['\n]?|`(?:\\[\s\S]|[^`\\])*(?:`|$)/;
const commentOrText = new RegExp(`(${comment.source})|${text.source}`, "g");

/** Blanks comments, so that every other character keeps its place. */
const withoutComments = (code: string): string =>
  code.replace(commentOrText, (found, isComment) => (isComment ? found.replace(/[^\n]/g, " ") : found));

/** Finds the calls that name a kind literally. A reference in a variable is not followed. */
export function literalCalls(source: string): LiteralCall[] {
  const code = withoutComments(source);
  const calls = code.matchAll(/\bkube\s*\.\s*(\w+)\s*(?:<[^<>()]*>)?\s*\(\s*\{([^{}]*)(?:\{([^{}]*))?/g);
  return [...calls].flatMap(({ index, 1: method = "", 2: fields = "", 3: inner = "" }) => {
    const [apiVersion, kind] = [fieldOf(fields, "apiVersion"), fieldOf(fields, "kind")];
    if (apiVersion === undefined || kind === undefined) return [];
    // An object has its namespace in its metadata.
    const namespace =
      fieldOf(fields, "namespace") ?? (endsInMetadata.test(fields) ? fieldOf(inner, "namespace") : undefined);
    return [{ method, apiVersion, kind, ...(namespace !== undefined && { namespace }), ...placeIn(code, index) }];
  });
}

const endsInMetadata = /(?<![.\w$])metadata\s*:\s*$/;

const fieldOf = (fields: string, name: string): string | undefined =>
  new RegExp(`(?<![.\\w$])${name}\\s*:\\s*(["'\`])([\\w./-]+)\\1`).exec(fields)?.[2];

/** Finds the members of `Triggers<{ … }>`; empty if their types are named elsewhere. */
export function triggerTypes(source: string): TriggerType[] {
  const code = withoutComments(source);
  const found = /\bTriggers\s*<\s*\{/.exec(code);
  return found ? membersOf(code, found.index + found[0].length) : [];
}

/** The members of an object type whose text begins at an offset. */
function membersOf(code: string, from: number): TriggerType[] {
  const found: TriggerType[] = [];
  let [depth, start] = [0, from];
  for (let at = from; at < code.length; at++) {
    const sign = code.charAt(at);
    const isEnd = sign === "}" && depth === 0;
    if ("{<([".includes(sign)) depth++;
    else if ("}>)]".includes(sign)) depth--;
    if (!isEnd && (depth > 0 || !/[;,\n]/.test(sign))) continue;
    const member = /^(\s*)(?:readonly\s+)?(?:"([^"]+)"|'([^']+)'|([\w$]+))\??\s*:\s*([\w$]+)/.exec(
      code.slice(start, at),
    );
    if (member) {
      const [, indent = "", double, single, plain, type = ""] = member;
      found.push({ trigger: double ?? single ?? plain ?? "", type, ...placeIn(code, start + indent.length) });
    }
    if (isEnd) return found;
    start = at + 1;
  }
  return [];
}

/** Names that a source imports from a module, except those that it renames. */
export const importedFrom = (source: string, module: string): ReadonlySet<string> =>
  new Set(
    [...withoutComments(source).matchAll(/\bimport\s+(?:type\s+)?\{([^{}]*)\}\s*from\s*["']([^"'\n]+)["']/g)]
      .filter(({ 2: from }) => from === module)
      .flatMap(({ 1: names = "" }) => names.split(",").map((name) => name.replace(/^\s*type\s/, "").trim()))
      .filter((name) => /^[\w$]+$/.test(name)),
  );

function placeIn(code: string, offset: number): { line: number; column: number } {
  const before = code.slice(0, offset).split("\n");
  return { line: before.length, column: (before.at(-1) ?? "").length + 1 };
}
