import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formOf } from "../../deploy/values/forms.ts";

const takes = (form: string, text: string): boolean => new RegExp(String(formOf(form).pattern)).test(text);

describe("the form `cidr`", () => {
  test("takes every network of IPv4 and of IPv6", () => {
    const v4 = fc.tuple(fc.ipV4(), fc.integer({ min: 0, max: 32 }));
    // Kubernetes, too, refuses these with an embedded IPv4 address.
    const v6 = fc.tuple(
      fc.ipV6().filter((address) => !address.includes(".")),
      fc.integer({ min: 0, max: 128 }),
    );
    fc.assert(fc.property(fc.oneof(v4, v6), ([address, bits]) => takes("cidr", `${address}/${bits}`)));
  });

  test("takes the numbers of a network of IPv4, and none above them", () => {
    for (let number = 0; number < 1_000; number++) {
      expect(takes("cidr", `10.${number}.0.${number}/8`)).toBe(number < 256);
      expect(takes("cidr", `10.0.0.0/${number}`)).toBe(number <= 32);
      expect(takes("cidr", `fd00::/${number}`)).toBe(number <= 128);
    }
  });

  test.each(["10.0.0.1", "fd00::1", "10.0.0/24", "1::2::3/64", "12345::/16", "example.com/32", "/0"])(
    "refuses %s",
    (text) => {
      expect(takes("cidr", text)).toBe(false);
    },
  );
});

describe("the form `quantity`", () => {
  test.each(["2Gi", "100m", "1", "0.5", ".5", "1e3", "1E-3", "128974848", "12k", "1."])("takes %s", (text) => {
    expect(takes("quantity", text)).toBe(true);
  });
  test.each(["", "big", "2GB", "2 Gi", "-1", "1,5", "Gi", "1e", "2gi", "1Ki5"])("refuses %s", (text) => {
    expect(takes("quantity", text)).toBe(false);
  });
});

describe("a type of Kubernetes", () => {
  test("refuses the fields that it does not have, at any depth, and holds no reference", () => {
    const form = formOf("io.k8s.api.core.v1.EnvVar");
    expect(form).toMatchObject({
      required: ["name"],
      additionalProperties: false,
      properties: {
        valueFrom: { properties: { secretKeyRef: { additionalProperties: false, required: ["key"] } } },
      },
    });
    expect(JSON.stringify(form)).not.toContain("$ref");
  });

  test("that does not exist is no form", () => {
    expect(() => formOf("io.k8s.api.core.v1.Nothing")).toThrow("no form io.k8s.api.core.v1.Nothing");
  });
});
