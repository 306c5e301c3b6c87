// Access to an unchecked document of any shape: missing values and values of another type are ignored.

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const field = (value: unknown, name: string): unknown => (isRecord(value) ? value[name] : undefined);

export const items = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

export const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
