/** A field that differs between two states of an object. */
interface FieldChange {
  /** As in `.spec.ports[0].name`; a field whose name has other characters is in quotes. */
  readonly path: string;
  /** Absent if the field was added, or removed. */
  readonly before?: unknown;
  readonly after?: unknown;
}

/** Returns the fields that differ, in the order of the later state. Lists whose items have names are compared by these. */
export function diffOf(before: unknown, after: unknown, path = ""): FieldChange[] {
  if (isSame(before, after)) return [];
  if (isRecord(before) && isRecord(after)) {
    const names = [...new Set([...Object.keys(after), ...Object.keys(before)])];
    return names.flatMap((name) => fieldDiff(before, after, name, path + step(name)));
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const [old, now] = [byName(before), byName(after)];
    if (old && now) {
      const names = [...new Set([...now.keys(), ...old.keys()])];
      return names.flatMap((name) =>
        diffOfPair(old.has(name), old.get(name), now.has(name), now.get(name), `${path}[name=${name}]`),
      );
    }
    const length = Math.max(before.length, after.length);
    return Array.from({ length }, (_, index) => index).flatMap((index) =>
      diffOfPair(index < before.length, before[index], index < after.length, after[index], `${path}[${index}]`),
    );
  }
  return [{ path, before, after }];
}

function fieldDiff(before: Fields, after: Fields, name: string, path: string): FieldChange[] {
  return diffOfPair(Object.hasOwn(before, name), before[name], Object.hasOwn(after, name), after[name], path);
}

function diffOfPair(was: boolean, before: unknown, is: boolean, after: unknown, path: string): FieldChange[] {
  if (was && is) return diffOf(before, after, path);
  return [was ? { path, before } : { path, after }];
}

type Fields = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

/** Returns the items by their names, if each has another one. */
function byName(items: readonly unknown[]): Map<string, unknown> | undefined {
  const found = new Map<string, unknown>();
  for (const item of items) {
    if (!isRecord(item) || typeof item.name !== "string" || found.has(item.name)) return undefined;
    found.set(item.name, item);
  }
  return found;
}

const step = (name: string): string => (/^[A-Za-z_$][\w$-]*$/.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`);
