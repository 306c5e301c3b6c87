// Schemas of a function's access outside of the cluster: hosts and environment values.
import { isIP } from "node:net";
import { z } from "zod";
import { dnsSubdomain } from "../kube/names.ts";

/** A DNS name, all names below one, or a literal IP address; without scheme, port or path. */
export const egressSchema = z.strictObject({
  host: z
    .string()
    .refine(
      (host) => isIP(unbracketed(host)) !== 0 || isName(host) || (host.startsWith("*.") && isDomain(host.slice(2))),
      { error: "expected a host name, *.domain or an IP address, without scheme or port" },
    )
    .refine((host) => !isMachine(host), { error: "no name may resolve to the machine itself" })
    .describe(
      "Host name, matched exactly; `*.example.com` matches all names below it, at any depth. Loopback and link-local addresses are allowed only if the host is written as that address.",
    ),
  network: z
    .enum(["Public", "Private"])
    .default("Public")
    .describe(
      "The addresses to which names may resolve. Public: public addresses, and for names that end in .svc the cluster's. Private: also private addresses and the cluster's.",
    ),
  ports: z
    .array(z.int().min(1).max(65_535))
    .min(1, { error: "expected at least one port" })
    .max(100)
    .default([443])
    .describe("Ports; 443 by default."),
});

const isName = (host: string): boolean => dnsSubdomain.test(host.toLowerCase()) && !/^[\d.]+$/.test(host);

/** Whether a name stands for the local machine, as do all names below `localhost` (RFC 6761). */
export const isMachine = (name: string): boolean => /(?:^|\.)localhost\.?$/i.test(name);

/** Whether a host has at least two labels. `*.com` is refused, because it would cover a whole top-level domain. */
const isDomain = (host: string): boolean => isName(host) && host.replace(/\.$/, "").includes(".");

/** Returns an IPv6 address without the brackets that a URL puts around it. */
export const unbracketed = (host: string): string => host.replace(/^\[(.*)\]$/, "$1");

const keyRef = z.strictObject({
  name: z
    .string()
    .regex(dnsSubdomain, { error: "expected an object's name" })
    .describe("Its name, in the runtime's namespace."),
  key: z
    .string()
    .regex(/^[-._a-zA-Z0-9]{1,253}$/, { error: "expected a key of its data" })
    .describe("The key of its data."),
  optional: z.boolean().default(false).describe("If the key is missing, omit the variable instead of failing."),
});

/** core/v1 EnvVar, with the two of its sources that do not refer to a pod. */
export const envSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_.-]{0,252}$/, { error: "expected a name such as TOKEN" })
    .describe("The key in ctx.env."),
  value: z.string().optional().describe("The value itself; never a secret."),
  valueFrom: z
    .strictObject({
      secretKeyRef: keyRef.optional().describe("A key of a Secret."),
      configMapKeyRef: keyRef.optional().describe("A key of a ConfigMap."),
    })
    .optional()
    .describe("Source of the value, which is read again when it changes."),
});
