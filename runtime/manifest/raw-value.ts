// A document as it was read, of any shape: what is not there, or is of another type, is passed over.

export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const field = (value: unknown, name: string): unknown => (isRecord(value) ? value[name] : undefined);

export const items = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

export const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
