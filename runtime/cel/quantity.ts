/** The value of each suffix, in units of 10^-9, the smallest quantity. */
const scales: Readonly<Record<string, bigint>> = {
  n: 1n,
  u: 10n ** 3n,
  m: 10n ** 6n,
  "": 10n ** 9n,
  k: 10n ** 12n,
  M: 10n ** 15n,
  G: 10n ** 18n,
  T: 10n ** 21n,
  P: 10n ** 24n,
  E: 10n ** 27n,
  Ki: 10n ** 9n * 2n ** 10n,
  Mi: 10n ** 9n * 2n ** 20n,
  Gi: 10n ** 9n * 2n ** 30n,
  Ti: 10n ** 9n * 2n ** 40n,
  Pi: 10n ** 9n * 2n ** 50n,
  Ei: 10n ** 9n * 2n ** 60n,
};
const whole = 10n ** 9n;
const syntax = /^([+-]?)(\d+\.?\d*|\.\d*)(?:([eE][+-]?\d{1,3})|([numkMGTPE]|[KMGTPE]i)?)$/;

/** A quantity of a resource, such as `100m` or `1.5Gi`, with a precision of 10^-9. */
export class Quantity {
  readonly billionths: bigint;

  private constructor(billionths: bigint) {
    this.billionths = billionths;
  }

  static isQuantity(text: string): boolean {
    return syntax.test(text);
  }

  /** Parses a text. Throws, with the API server's message, if it is invalid. Rounds up below 10^-9. */
  static parse(text: string): Quantity {
    const [, sign, digits = "", exponent, suffix = ""] = syntax.exec(text) ?? [];
    if (sign === undefined) {
      const form = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$";
      throw new Error(`quantities must match the regular expression '${form}'`);
    }
    const [integer = "", fraction = ""] = digits.split(".");
    const power = BigInt(exponent ? exponent.slice(1) : 0) - BigInt(fraction.length);
    const scaled = BigInt(integer + fraction) * (scales[suffix] ?? whole);
    const divisor = power < 0n ? 10n ** -power : 1n;
    const billionths = power < 0n ? (scaled + divisor - 1n) / divisor : scaled * 10n ** power;
    return new Quantity(sign === "-" ? -billionths : billionths);
  }

  /** Returns a negative number if this is less than the other, a positive one if it is greater. */
  compareTo(other: Quantity): -1 | 0 | 1 {
    if (this.billionths === other.billionths) return 0;
    return this.billionths < other.billionths ? -1 : 1;
  }

  /** Adds the other `times` times. */
  add(other: Quantity, times: bigint): Quantity {
    return new Quantity(this.billionths + other.billionths * times);
  }

  get isInteger(): boolean {
    return this.billionths % whole === 0n;
  }

  asInteger(): bigint {
    if (!this.isInteger) throw new Error("cannot convert value to integer");
    return this.billionths / whole;
  }

  asNumber(): number {
    return Number(this.billionths) / Number(whole);
  }
}
