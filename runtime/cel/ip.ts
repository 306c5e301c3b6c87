import { IpAddress } from "./ip-address.ts";
import type { Library } from "./library.ts";
import type { Meter } from "./meter.ts";

/** Cost of parsing an address. */
const reading = 700;

const parse = (meter: Meter, text: string): IpAddress => {
  meter.pay(reading);
  return IpAddress.parse(text);
};

const isUnspecified = ({ bytes }: IpAddress): boolean => bytes.every((byte) => byte === 0);

const isLoopback = ({ bytes, family }: IpAddress): boolean =>
  family === 4 ? bytes[0] === 127 : bytes.every((byte, index) => byte === (index === 15 ? 1 : 0));

/** 224.0.0.0/24, and ff02::/16: the link's scope. */
const isLinkLocalMulticast = ({ bytes: [a = 0, b = 0, c = 0], family }: IpAddress): boolean =>
  family === 4 ? a === 224 && b === 0 && c === 0 : a === 0xff && (b & 0x0f) === 2;

/** 169.254.0.0/16, and fe80::/10. */
const isLinkLocalUnicast = ({ bytes: [a = 0, b = 0], family }: IpAddress): boolean =>
  family === 4 ? a === 169 && b === 254 : a === 0xfe && (b & 0xc0) === 0x80;

const isMulticast = ({ bytes: [a = 0], family }: IpAddress): boolean =>
  family === 4 ? (a & 0xf0) === 224 : a === 0xff;

const isBroadcast = ({ bytes, family }: IpAddress): boolean => family === 4 && bytes.every((byte) => byte === 255);

/** As in Go's net/netip: private addresses are global unicast. */
const isGlobalUnicast = (address: IpAddress): boolean =>
  ![isUnspecified, isLoopback, isMulticast, isLinkLocalUnicast, isBroadcast].some((is) => is(address));

/** Kubernetes' functions on IP addresses. */
export const ip: Library = {
  types: [["net.IP", IpAddress]],
  namespaces: ["ip"],
  functions: [
    ["ip(string): net.IP", parse],
    [
      "isIP(string): bool",
      (meter, text: string) => {
        meter.pay(reading);
        return IpAddress.isIp(text);
      },
    ],
    ["ip.isCanonical(string): bool", (meter, _: unknown, text: string) => parse(meter, text).toString() === text],
    ["string(net.IP): string", (_, address: IpAddress) => address.toString()],
    ["net.IP.family(): int", (_, { family }: IpAddress) => family],
    ["net.IP.isUnspecified(): bool", (_, address: IpAddress) => isUnspecified(address)],
    ["net.IP.isLoopback(): bool", (_, address: IpAddress) => isLoopback(address)],
    ["net.IP.isLinkLocalMulticast(): bool", (_, address: IpAddress) => isLinkLocalMulticast(address)],
    ["net.IP.isLinkLocalUnicast(): bool", (_, address: IpAddress) => isLinkLocalUnicast(address)],
    ["net.IP.isGlobalUnicast(): bool", (_, address: IpAddress) => isGlobalUnicast(address)],
  ],
};
