// ends with: ok
// within: 1500 ms
import type { Context } from "../../../sdk/index.ts";

export default (event: object, ctx: Context) => {
  const names = [
    "applySync",
    "applyIgnored",
    "derefInto",
    "copyInto",
    "createContextSync",
    "compileScriptSync",
    "evalSync",
  ];
  const seen = new Set<unknown>();
  const queue: unknown[] = [globalThis, event, ctx];
  while (queue.length > 0) {
    const value = queue.pop();
    if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value)) continue;
    seen.add(value);
    queue.push(Object.getPrototypeOf(value));
    for (const key of Reflect.ownKeys(value)) {
      if (names.includes(String(key))) throw new Error(`reached ${String(key)}`);
      try {
        queue.push((value as never)[key]);
      } catch {}
    }
  }
  if (seen.size < 300) throw new Error(`walked only ${seen.size}`);
};
