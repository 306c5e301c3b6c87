/**
 * Reads protobuf's wire format: varints, fixed-size numbers and length-delimited bytes. Throws a RangeError if the input is
 * truncated.
 */
export class ProtobufReader {
  private readonly bytes: Buffer;
  private offset = 0;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  get done(): boolean {
    return this.offset >= this.bytes.length;
  }

  /** Reads the next field's number and wire type. */
  tag(): { field: number; wire: number } {
    const tag = Number(this.varint());
    return { field: tag >>> 3, wire: tag & 7 };
  }

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.bytes.readUInt8(this.offset++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return BigInt.asIntN(64, value);
    }
    throw new RangeError("a varint is too long");
  }

  double(): number {
    const value = this.bytes.readDoubleLE(this.offset);
    this.offset += 8;
    return value;
  }

  /** Reads a length-delimited field. */
  delimited(): Buffer {
    const length = Number(this.varint());
    if (length < 0 || this.offset + length > this.bytes.length) throw new RangeError("a field is cut short");
    const value = this.bytes.subarray(this.offset, this.offset + length);
    this.offset += length;
    return value;
  }

  /** Skips an unknown field. */
  skip(wire: number): void {
    if (wire === 0) this.varint();
    else if (wire === 1) this.offset += 8;
    else if (wire === 2) this.delimited();
    else if (wire === 5) this.offset += 4;
    else throw new RangeError(`wire type ${wire} is not known`);
  }
}
