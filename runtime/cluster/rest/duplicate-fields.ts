import type { Body } from "./body.ts";

/**
 * Returns the paths of fields that a JSON body contains twice; JSON.parse silently keeps the last one. The text must be valid
 * JSON. YAML's parser refuses duplicates itself.
 */
export function duplicateFields(body: Body): string[] {
  if (body.mediaType !== "" && body.mediaType !== "application/json") return [];
  const text = body.bytes.toString("utf8");
  const token = /"(?:[^"\\]|\\.)*"|[{}[\],:]/g;
  const duplicates: string[] = [];
  const stack: Level[] = [];
  let last = "";
  for (let match = token.exec(text); match; match = token.exec(text)) {
    const part = match[0];
    const level = stack.at(-1);
    if (part === "{" || part === "[")
      stack.push({ path: childPath(level), keys: part === "{" ? new Set() : undefined, key: "", index: 0 });
    else if (part === "}" || part === "]") stack.pop();
    else if (part === "," && level && !level.keys) level.index++;
    else if (part === ":" && level?.keys) {
      level.key = JSON.parse(last) as string;
      if (level.keys.has(level.key)) duplicates.push(childPath(level));
      level.keys.add(level.key);
    }
    last = part;
  }
  return [...new Set(duplicates)];
}

interface Level {
  path: string;
  /** Absent for arrays. */
  keys: Set<string> | undefined;
  key: string;
  index: number;
}

function childPath(level: Level | undefined): string {
  if (!level) return "";
  if (!level.keys) return `${level.path}[${level.index}]`;
  return level.path === "" ? level.key : `${level.path}.${level.key}`;
}
