import { type Document, isMap, isNode, isScalar, LineCounter, parseAllDocuments, Scalar, visit } from "yaml";
import { type ErrorCode, type SourceLocation, WatchfireError } from "../base/errors.ts";
import { exactInteger } from "../base/exact-json.ts";
import { suggest } from "../base/suggest.ts";
import { tooDeep } from "../document/nesting.ts";

const namePattern = /^[A-Za-z_][A-Za-z0-9_.-]*$/;

/** `$${`, or a placeholder `${…}`. One that is not closed matches to the end of the text. */
const placeholders = /\$\$\{|\$\{([^}]*)(\}?)/g;

/** Large integers keep their digits. */
const options = { intAsBigInt: true, uniqueKeys: true, prettyErrors: false, stringKeys: true } as const;

interface NamedValue {
  /** As YAML on one line. */
  readonly yaml: string;
  /** As part of a longer text, numbers as they are written; `undefined` for a list or a map. */
  readonly text: string | undefined;
  readonly place: SourceLocation;
}

/** A manifest's text after its placeholders were filled. */
interface FilledText {
  readonly text: string;
  /** Placeholders that cannot be filled. If there are any, the text is as it is in the file. */
  readonly faults: readonly WatchfireError[];
}

/** One use of a value in a manifest. */
export interface ValueUse {
  readonly name: string;
  readonly place: SourceLocation;
  /** The value as YAML on one line. */
  readonly value: string;
}

/**
 * Values that replace `${name}` in the texts of manifests. A plain scalar that is only a placeholder becomes the value, with its
 * type. In quotes, or as part of a longer text, it becomes text. `$${` stands for `${`.
 */
export class ManifestValues {
  private readonly values: ReadonlyMap<string, NamedValue>;
  /** By place, because a text may be filled more than once. */
  private readonly used = new Map<string, ValueUse>();

  private constructor(values: ReadonlyMap<string, NamedValue>) {
    this.values = values;
  }

  /**
   * Reads a YAML map from names to values.
   * @param file its name in faults
   * @throws WatchfireError WF_MANIFEST_SYNTAX, WF_MANIFEST_VALUE_INVALID, with all faults
   */
  static read(text: string, file: string): ManifestValues {
    const fault = (code: ErrorCode, what: string, place: SourceLocation) => new WatchfireError(code, { what, place });
    const deep = tooDeep(text);
    if (deep) throw fault("WF_MANIFEST_SYNTAX", "nested deeper than any manifest", { file, ...deep });
    const lines = new LineCounter();
    const parsed = parseAllDocuments(text, { ...options, lineCounter: lines });
    const documents = Array.isArray(parsed) ? parsed : [];
    const at = (offset = 0): SourceLocation => {
      const { line, col } = lines.linePos(offset);
      return { file, line, column: col };
    };
    const [document, second] = documents;
    const [error] = documents.flatMap(({ errors }) => errors);
    if (error) throw fault("WF_MANIFEST_SYNTAX", error.message, at(error.pos[0]));
    if (!document || second || !isMap(document.contents)) {
      const place = at((second ?? document)?.contents?.range?.[0]);
      throw fault("WF_MANIFEST_VALUE_INVALID", "the file is not a single map from names to values", place);
    }
    const values = new Map<string, NamedValue>();
    const faults: WatchfireError[] = [];
    for (const { key, value } of document.contents.items) {
      const name = isScalar(key) ? String(key.value) : "";
      const place = at((key as Scalar).range?.[0]);
      const content = isScalar(value) ? value.value : value;
      if (!namePattern.test(name)) {
        const what = `the name ${JSON.stringify(name)} is not of letters, digits and _ . -, a letter or _ first`;
        faults.push(fault("WF_MANIFEST_VALUE_INVALID", what, place));
      } else if (content === null || content === undefined) {
        faults.push(fault("WF_MANIFEST_VALUE_INVALID", `${name} has no value`, place));
      } else values.set(name, { ...formsOf(value, document), place });
    }
    const [first, ...more] = faults;
    if (first) throw new WatchfireError(first.code, { ...first.detail, more });
    return new ManifestValues(values);
  }

  /** The uses of values in the texts that were filled, in the order of files and places. */
  get uses(): readonly ValueUse[] {
    return [...this.used.values()];
  }

  /** Returns a fault for each value that no text has used. */
  unused(): WatchfireError[] {
    const used = new Set(this.uses.map(({ name }) => name));
    return [...this.values]
      .filter(([name]) => !used.has(name))
      .map(
        ([name, { place }]) =>
          new WatchfireError("WF_MANIFEST_VALUE_UNUSED", { what: `no manifest has \${${name}}`, place }),
      );
  }

  /**
   * Fills the placeholders of a file's scalars. Lines keep their numbers. Text that is not YAML is returned unchanged: parsing
   * it later reports the fault.
   */
  fill(text: string, file: string): FilledText {
    if (!text.includes("${") || tooDeep(text)) return { text, faults: [] };
    const lines = new LineCounter();
    const parsed = parseAllDocuments(text, { ...options, uniqueKeys: false, lineCounter: lines });
    const faults: WatchfireError[] = [];
    const parts: string[] = [];
    let end = 0;
    for (const document of Array.isArray(parsed) ? parsed : []) {
      if (document.errors.length > 0) continue;
      visit(document, {
        Scalar: (key, node) => {
          const { value, range } = node;
          if (typeof value !== "string" || !range || !value.includes("${")) return;
          const { line, col } = lines.linePos(range[0]);
          const place = { file, line, column: col };
          if (key === "key") {
            faults.push(invalid("a name of a field has a placeholder; only values are filled", place));
            return;
          }
          const filled = this.filled(value, node.type === Scalar.PLAIN, place, faults);
          // A text of several lines becomes one line, followed by as many line breaks as it had.
          const breaks = text.slice(range[0], range[1]).replace(/[^\n]/g, "");
          parts.push(text.slice(end, range[0]), filled, breaks);
          end = range[1];
        },
      });
    }
    return { text: faults.length > 0 ? text : parts.join("") + text.slice(end), faults };
  }

  private filled(value: string, isPlain: boolean, place: SourceLocation, faults: WatchfireError[]): string {
    const use = (name: string, as: "text" | "yaml"): string => {
      const found = this.values.get(name);
      const filled = found?.[as];
      if (found && filled !== undefined) {
        this.used.set(JSON.stringify([place, name]), { name, place, value: found.yaml });
        return filled;
      }
      faults.push(
        found
          ? invalid(`\${${name}} is a list or a map, which cannot be a part of a text`, place)
          : this.unknown(name, place),
      );
      return "";
    };
    const [, alone] = (isPlain && /^\$\{([^}]*)\}$/.exec(value)) || [];
    if (alone !== undefined && namePattern.test(alone)) return use(alone, "yaml");
    const text = value.replace(placeholders, (found, name: string | undefined, close: string) => {
      if (name === undefined) return "${";
      if (close !== "" && namePattern.test(name)) return use(name, "text");
      faults.push(invalid(`${found} is not a placeholder; for the text itself, write $${found}`, place));
      return "";
    });
    return quoted(text);
  }

  private unknown(name: string, place: SourceLocation): WatchfireError {
    const near = suggest(name, [...this.values.keys()]);
    const hint = near === undefined ? {} : { hint: `did you mean \${${near}}?` };
    return new WatchfireError("WF_MANIFEST_VALUE_UNKNOWN", {
      what: `there is no value for \${${name}}`,
      place,
      ...hint,
    });
  }
}

/** Returns a value's forms. */
function formsOf(value: unknown, document: Document): Omit<NamedValue, "place"> {
  if (isScalar(value)) {
    const { value: content, source } = value;
    const text = typeof content === "string" ? content : (source ?? String(content));
    return { yaml: typeof content === "string" ? quoted(content) : text, text };
  }
  const plain = isNode(value) ? value.toJS(document) : value;
  const exact = (_: string, each: unknown) => (typeof each === "bigint" ? exactInteger(each) : each);
  return { yaml: escaped(JSON.stringify(plain, exact)), text: undefined };
}

const invalid = (what: string, place: SourceLocation): WatchfireError =>
  new WatchfireError("WF_MANIFEST_VALUE_INVALID", { what, place });

/** Returns a text as a double-quoted YAML scalar. */
const quoted = (text: string): string => escaped(JSON.stringify(text));

/** Escapes characters that JSON allows in strings and YAML does not, or treats as line breaks. */
const escaped = (json: string): string =>
  json.replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
