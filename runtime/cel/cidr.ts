import { IpAddress } from "./ip-address.ts";
import type { Library } from "./library.ts";
import { EvaluationError, type Meter } from "./meter.ts";

/** A network: an address and the length of its prefix in bits. */
class Cidr {
  readonly address: IpAddress;
  readonly prefixLength: number;

  constructor(address: IpAddress, prefixLength: number) {
    this.address = address;
    this.prefixLength = prefixLength;
  }

  static read(text: string): Cidr | undefined {
    const [, address = "", digits] = /^([^/]{1,45})\/(0|[1-9]\d{0,2})$/.exec(text) ?? [];
    if (digits === undefined || !IpAddress.isIp(address)) return undefined;
    const parsed = IpAddress.parse(address);
    return Number(digits) <= parsed.bytes.length * 8 ? new Cidr(parsed, Number(digits)) : undefined;
  }

  masked(prefixLength = this.prefixLength): IpAddress {
    const bytes = this.address.bytes.map((byte, index) => {
      const bits = Math.min(8, Math.max(0, prefixLength - index * 8));
      return byte & (0xff << (8 - bits)) & 0xff;
    });
    return IpAddress.fromBytes(bytes);
  }

  contains(address: IpAddress, prefixLength: number): boolean {
    if (address.family !== this.address.family || prefixLength < this.prefixLength) return false;
    return new Cidr(address, this.prefixLength).masked().compareTo(this.masked()) === 0;
  }

  compareTo(other: unknown): number {
    if (!(other instanceof Cidr)) return Number.NaN;
    return this.address.compareTo(other.address) || this.prefixLength - other.prefixLength;
  }

  toString(): string {
    return `${this.address}/${this.prefixLength}`;
  }
}

/** Cost of parsing a network, or of comparing two. */
const reading = 700;

function parse(meter: Meter, text: string): Cidr {
  meter.pay(reading);
  const found = Cidr.read(text);
  if (!found) throw new EvaluationError(`a text of ${text.length} characters is no network in CIDR notation`);
  return found;
}

const containsIp = (meter: Meter, one: Cidr, address: IpAddress): boolean => {
  meter.pay(reading);
  return one.contains(address, address.bytes.length * 8);
};

const containsCidr = (meter: Meter, one: Cidr, other: Cidr): boolean => {
  meter.pay(reading);
  return one.contains(other.address, other.prefixLength);
};

/** Kubernetes' functions on networks. */
export const cidr: Library = {
  types: [["net.CIDR", Cidr]],
  functions: [
    ["cidr(string): net.CIDR", parse],
    [
      "isCIDR(string): bool",
      (meter, text: string) => {
        meter.pay(reading);
        return Cidr.read(text) !== undefined;
      },
    ],
    ["string(net.CIDR): string", (_, one: Cidr) => one.toString()],
    ["net.CIDR.containsIP(net.IP): bool", containsIp],
    [
      "net.CIDR.containsIP(string): bool",
      (meter, one: Cidr, text: string) => containsIp(meter, one, IpAddress.parse(text)),
    ],
    ["net.CIDR.containsCIDR(net.CIDR): bool", containsCidr],
    [
      "net.CIDR.containsCIDR(string): bool",
      (meter, one: Cidr, text: string) => containsCidr(meter, one, parse(meter, text)),
    ],
    ["net.CIDR.ip(): net.IP", (_, { address }: Cidr) => address],
    [
      "net.CIDR.masked(): net.CIDR",
      (meter, one: Cidr) => {
        meter.pay(reading);
        return new Cidr(one.masked(), one.prefixLength);
      },
    ],
    ["net.CIDR.prefixLength(): int", (_, { prefixLength }: Cidr) => prefixLength],
  ],
};
