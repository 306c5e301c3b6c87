const binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const decimal = ["k", "M", "G", "T", "P", "E"];

/** A Kubernetes quantity, such as `500m`, `2` or `16Gi`, as a number; NaN without one. */
export function amountOf(quantity: string | undefined): number {
  const [, digits = "", unit = ""] = /^([\d.]+(?:[eE][+-]?\d+)?)(m|[KMGTPE]i|[kMGTPE])?$/.exec(quantity ?? "") ?? [];
  if (digits === "") return Number.NaN;
  if (unit === "m") return Number(digits) / 1000;
  if (unit.endsWith("i")) return Number(digits) * 1024 ** (binary.indexOf(unit) + 1);
  return Number(digits) * 1000 ** (decimal.indexOf(unit) + 1);
}
