import { BlockList, isIP } from "node:net";

/**
 * Networks that are not the public internet, by IANA's special-purpose registries (RFC 6890 and updates). The carriers'
 * shared range is among them, in which some clusters put their pods.
 */
const special = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  // Azure's host: what a virtual machine's agent asks for its settings and certificates. A public address that is none.
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

/** The parts of them that a cluster's own services may lie in. */
const inside = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];

/** IPv6 forms that carry an IPv4 address, as the number of the 16-bit group with which it begins. */
const carriers = [
  { prefix: "::ffff:0:0/96", group: 6 },
  // IPv4-translated addresses (RFC 2765, 2.1); a host with a stateless translator reaches the IPv4 address by them.
  { prefix: "::ffff:0:0:0/96", group: 6 },
  { prefix: "64:ff9b::/96", group: 6 },
  { prefix: "2002::/16", group: 1 },
].map(({ prefix, group }) => ({ list: listOf([prefix]), group }));

const specialList = listOf(special);
const insideList = listOf(inside);

/** `public`; `inside`: private, as a cluster's pods and services are; `special`: loopback, link-local and all else. */
type AddressClass = "public" | "inside" | "special";

/** The class of an IP address; the IPv4 address within an IPv6 one counts. What is no address is `special`. */
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

/** A list of networks in CIDR notation. Throws for what is none. */
export function listOf(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", length = ""] = network.split("/");
    list.addSubnet(address, Number(length), isIP(address) === 6 ? "ipv6" : "ipv4");
  }
  return list;
}

/** Whether a list holds an address. */
export const holds = (list: BlockList, address: string): boolean =>
  list.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");

function embedded(address: string, group: number): string {
  const groups = groupsOf(address);
  const bytes = [groups[group] ?? 0, groups[group + 1] ?? 0].flatMap((value) => [value >> 8, value & 255]);
  return bytes.join(".");
}

/** The eight 16-bit groups of an IPv6 address. */
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
