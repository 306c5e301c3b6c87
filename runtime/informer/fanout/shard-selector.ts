import { namespaceHash } from "../../slots/namespace-hash.ts";

const field = "object.metadata.namespace";
/** The first number after the largest hash. */
const end = 2n ** 64n;

/**
 * Returns a `shardSelector` (KEP-5866) that selects all objects except those of some namespaces, as the ranges of hashes between
 * theirs. Each excluded hash is one of 2^64, so no other namespace is left out, however a server interprets the selector. Returns
 * "" if no namespace is given.
 */
export function allBut(namespaces: Iterable<string>): string {
  const hashes = [...new Set([...namespaces].map(hashOf))].sort((a, b) => (a < b ? -1 : 1));
  if (hashes.length === 0) return "";
  const starts = [0n, ...hashes.map((hash) => hash + 1n)];
  return [...hashes, end]
    .flatMap((to, index) => {
      const from = starts[index] ?? end;
      return from < to ? [`shardRange(${field},'${hex(from)}','${hex(to)}')`] : [];
    })
    .join("||");
}

function hashOf(namespace: string): bigint {
  const { high, low } = namespaceHash(namespace);
  return (BigInt(high) << 32n) | BigInt(low);
}

const hex = (hash: bigint): string => `0x${hash.toString(16).padStart(16, "0")}`;
