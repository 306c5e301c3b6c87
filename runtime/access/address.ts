import { BlockList, isIP } from "node:net";

/**
 * Networks that are not the public internet, by IANA's special-purpose registries (RFC 6890 and updates). They include the shared
 * range of carriers, which some clusters use for pods.
 */
const special = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  // Azure's host, from which a virtual machine's agent gets its settings and certificates. Nominally a public address.
  "168.63.129.16/32",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
  "::/96",
  "64:ff9b:1::/48",
  "100::/64",
  "2001::/23",
  "2001:db8::/32",
  "3fff::/20",
  "5f00::/16",
  "fc00::/7",
  "fe80::/10",
  "fec0::/10",
  "ff00::/8",
];

/** The private networks that a cluster's services may be in. */
const inside = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];

/** IPv6 forms that contain an IPv4 address. `group`: index of the 16-bit group where it begins. */
const carriers = [
  { prefix: "::ffff:0:0/96", group: 6 },
  // IPv4-translated addresses (RFC 2765, 2.1), by which a host with a stateless translator reaches the IPv4 address.
  { prefix: "::ffff:0:0:0/96", group: 6 },
  { prefix: "64:ff9b::/96", group: 6 },
  { prefix: "2002::/16", group: 1 },
].map(({ prefix, group }) => ({ list: listOf([prefix]), group }));

const specialList = listOf(special);
const insideList = listOf(inside);

/** `public`; `inside`: private, such as a cluster's pods and services; `special`: loopback, link-local and all others. */
type AddressClass = "public" | "inside" | "special";

/** Returns the class of an IP address. An IPv4 address inside an IPv6 one decides. Invalid addresses are `special`. */
export function classOf(address: string): AddressClass {
  const version = isIP(address);
  if (version === 0) return "special";
  const family = version === 4 ? "ipv4" : "ipv6";
  if (family === "ipv6") {
    const carrier = carriers.find(({ list }) => list.check(address, "ipv6"));
    if (carrier) return classOf(embedded(address, carrier.group));
  }
  if (insideList.check(address, family)) return "inside";
  return specialList.check(address, family) ? "special" : "public";
}

/** Returns a list of networks given in CIDR notation. Throws for an invalid one. */
export function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", length = ""] = network.split("/");
    list.addSubnet(address, Number(length), isIP(address) === 6 ? "ipv6" : "ipv4");
  }
  return list;
}

/** True if the list contains the address. */
export const holds = (list: BlockList, address: string): boolean =>
  list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");

function embedded(address: string, group: number): string {
  const groups = groupsOf(address);
  const bytes = [groups[group] ?? 0, groups[group + 1] ?? 0].flatMap((value) => [value >> 8, value & 255]);
  return bytes.join(".");
}

/** Returns the eight 16-bit groups of an IPv6 address. */
function groupsOf(address: string): number[] {
  const dotted = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address.replace(/%.*$/, ""));
  const text = dotted
    ? `${dotted[1]}${hex(Number(dotted[2]) * 256 + Number(dotted[3]))}:${hex(Number(dotted[4]) * 256 + Number(dotted[5]))}`
    : address.replace(/%.*$/, "");
  const [head = "", tail] = text.split("::");
  const parse = (part: string | undefined) => (part ? part.split(":").map((group) => Number.parseInt(group, 16)) : []);
  const before = parse(head);
  const after = parse(tail);
  return tail === undefined ? before : [...before, ...Array(8 - before.length - after.length).fill(0), ...after];
}

const hex = (value: number): string => value.toString(16);
