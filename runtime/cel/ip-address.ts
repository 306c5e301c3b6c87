import ipaddr from "ipaddr.js";
import { EvaluationError } from "./meter.ts";

/** Length of the longest IPv6 address, which ends in an IPv4 one. */
const longest = 45;

/** An IP address in the form that Kubernetes accepts: no zone, no IPv4 in an IPv6 address, no leading zeros in IPv4. */
export class IpAddress {
  readonly bytes: readonly number[];
  private readonly address: ipaddr.IPv4 | ipaddr.IPv6;

  private constructor(address: ipaddr.IPv4 | ipaddr.IPv6) {
    this.address = address;
    this.bytes = address.toByteArray();
  }

  static parse(text: string): IpAddress {
    const found = read(text);
    if (!found) throw new EvaluationError(`a text of ${text.length} characters is no IP address`);
    return new IpAddress(found);
  }

  static isIp(text: string): boolean {
    return read(text) !== undefined;
  }

  static fromBytes(bytes: readonly number[]): IpAddress {
    return new IpAddress(ipaddr.fromByteArray([...bytes]));
  }

  get family(): 4 | 6 {
    return this.bytes.length === 4 ? 4 : 6;
  }

  compareTo(other: unknown): number {
    return other instanceof IpAddress ? Buffer.compare(Buffer.from(this.bytes), Buffer.from(other.bytes)) : Number.NaN;
  }

  /** Returns its canonical form. */
  toString(): string {
    return this.address instanceof ipaddr.IPv6 ? this.address.toRFC5952String() : this.address.toString();
  }
}

const dotted = /^(?:(?:0|[1-9]\d{0,2})\.){3}(?:0|[1-9]\d{0,2})$/;

/** Rewrites the last 32 bits of an IPv6 address in hexadecimal, because the package reads `::1.2.3.4` as an IPv4 address. */
function withoutDots(text: string): string | undefined {
  if (!text.includes(".")) return text;
  const at = text.lastIndexOf(":") + 1;
  const end = text.slice(at);
  if (!dotted.test(end) || !ipaddr.IPv4.isValid(end)) return undefined;
  const [a = 0, b = 0, c = 0, d = 0] = ipaddr.IPv4.parse(end).octets;
  return `${text.slice(0, at)}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
}

function read(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  if (text.length > longest) return undefined;
  if (dotted.test(text)) {
    return ipaddr.IPv4.isValid(text) ? ipaddr.IPv4.parse(text) : undefined;
  }
  if (!text.includes(":") || text.includes("%")) return undefined;
  const hexadecimal = withoutDots(text);
  if (hexadecimal === undefined || !ipaddr.IPv6.isValid(hexadecimal)) return undefined;
  const address = ipaddr.IPv6.parse(hexadecimal);
  return address.isIPv4MappedAddress() ? undefined : address;
}
