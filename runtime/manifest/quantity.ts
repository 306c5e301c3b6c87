/** Bytes per suffix: the suffixes of Kubernetes that make sense for memory. */
const suffixes: Readonly<Record<string, number>> = {
  "": 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
};

/** Pattern of a size: `64Mi`, `128M`, `1.5Gi`. */
export const sizePattern = /^\d+(?:\.\d+)?(?:k|M|G|Ki|Mi|Gi)?$/;

/** Returns a size in Kubernetes' notation in bytes; `undefined` if it is malformed or not a whole number of bytes. */
export function parseSize(text: string): number | undefined {
  if (!sizePattern.test(text)) return undefined;
  const [, amount, suffix = ""] = /^([\d.]+)(\w*)$/.exec(text) ?? [];
  const bytes = Number(amount) * (suffixes[suffix] ?? Number.NaN);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}
