import { describe, expect, test } from "vitest";
import { decodeProtobuf } from "../../runtime/cluster/protobuf/decode.ts";

/** Encodes protobuf by hand: a varint, a length-delimited field, a varint field. */
const varint = (value: number): number[] => (value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)]);
const bytes = (field: number, value: string | readonly number[]): number[] => {
  const content = typeof value === "string" ? [...Buffer.from(value)] : [...value];
  return [...varint((field << 3) | 2), ...varint(content.length), ...content];
};
const number = (field: number, value: number): number[] => [...varint(field << 3), ...varint(value)];
const envelope = (apiVersion: string, kind: string, raw: readonly number[]) =>
  Buffer.from([...Buffer.from("k8s\0"), ...bytes(1, [...bytes(1, apiVersion), ...bytes(2, kind)]), ...bytes(2, raw)]);

describe("a protobuf body", () => {
  test("becomes the JSON that the same client would have sent: no empty strings, bytes as base64", () => {
    const meta = [
      ...bytes(1, "a"),
      ...bytes(2, ""),
      ...bytes(8, []),
      ...bytes(11, [...bytes(1, "k"), ...bytes(2, "v")]),
    ];
    const entry = [...bytes(1, "x"), ...bytes(2, [255, 0])];
    expect(decodeProtobuf(envelope("v1", "ConfigMap", [...bytes(1, meta), ...bytes(3, entry)]))).toEqual({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "a", labels: { k: "v" } },
      binaryData: { x: "/wA=" },
    });
  });

  test("keeps a zero that a pointer holds, and drops one that Go leaves out", () => {
    const spec = [...number(1, 0), ...number(5, 0)];
    expect(decodeProtobuf(envelope("apps/v1", "Deployment", bytes(2, spec)))).toMatchObject({ spec: { replicas: 0 } });
    expect(decodeProtobuf(envelope("apps/v1", "Deployment", bytes(2, spec))).spec).not.toHaveProperty(
      "minReadySeconds",
    );
  });

  test("puts embedded structs where JSON has them, and numbers or strings as they are", () => {
    const port = [...bytes(1, "p"), ...number(3, 80), ...bytes(4, [...number(1, 1), ...bytes(3, "http")])];
    expect(decodeProtobuf(envelope("v1", "Service", bytes(2, bytes(1, port)))).spec).toEqual({
      ports: [{ name: "p", port: 80, targetPort: "http" }],
    });
    const volume = [...bytes(1, "v"), ...bytes(2, bytes(19, bytes(1, bytes(1, "settings"))))];
    expect(decodeProtobuf(envelope("v1", "Pod", bytes(2, bytes(1, volume)))).spec).toEqual({
      volumes: [{ name: "v", configMap: { name: "settings" } }],
    });
  });

  test("passes over fields of a newer release", () => {
    const raw = [...bytes(1, bytes(1, "a")), ...bytes(900, "new"), ...number(901, 300)];
    expect(decodeProtobuf(envelope("v1", "ConfigMap", raw)).metadata).toEqual({ name: "a" });
  });

  test("that is cut short, has no prefix, or is of no known kind is refused", () => {
    const whole = envelope("v1", "ConfigMap", bytes(1, bytes(1, "a")));
    expect(() => decodeProtobuf(whole.subarray(0, whole.length - 1))).toThrow(RangeError);
    expect(() => decodeProtobuf(Buffer.from("{}"))).toThrow("expected prefix");
    expect(() => decodeProtobuf(envelope("v1", "Nothing", []))).toThrow('no kind "Nothing"');
  });

  test("holds every digit of an int64, and of what is JSON inside of it", () => {
    const data = [...bytes(1, `{"id":9223372036854775807}`)];
    const revision = [0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10]; // 2^53 + 1
    const raw = [...bytes(1, bytes(1, "a")), ...bytes(2, data), (3 << 3) | 0, ...revision];
    expect(decodeProtobuf(envelope("apps/v1", "ControllerRevision", raw))).toMatchObject({
      data: { id: 9223372036854775807n },
      revision: 9007199254740993n,
    });
  });
});
