import ipaddr from "ipaddr.js";
import { EvaluationError } from "./meter.ts";

/** An IPv6 address with an IPv4 one at its end. */
const longest = 45;

/** An IP address as Kubernetes takes one: no zone, no IPv4 in an IPv6 address, no leading zeros in IPv4. */
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

  /** In its canonical form. */
  toString(): string {
    return this.address instanceof ipaddr.IPv6 ? this.address.toRFC5952String() : this.address.toString();
  }
}

function read(text: string): ipaddr.IPv4 | ipaddr.IPv6 | undefined {
  if (text.length > longest) return undefined;
  if (/^(?:(?:0|[1-9]\d{0,2})\.){3}(?:0|[1-9]\d{0,2})$/.test(text)) {
    return ipaddr.IPv4.isValid(text) ? ipaddr.IPv4.parse(text) : undefined;
  }
  if (!text.includes(":") || text.includes("%") || !ipaddr.IPv6.isValid(text)) return undefined;
  const address = ipaddr.IPv6.parse(text);
  return address.isIPv4MappedAddress() ? undefined : address;
}
