import { z } from "zod";

/**
 * The part of a definition's schema that concerns a value's type. Ranges (`pattern`, `minimum`, rules) cannot be expressed by a
 * type.
 */
export interface StructuralSchema {
  readonly description?: string | undefined;
  readonly type?: string | undefined;
  readonly enum?: readonly (string | number | boolean | null)[] | undefined;
  readonly nullable?: boolean | undefined;
  readonly items?: StructuralSchema | undefined;
  readonly properties?: Readonly<Record<string, StructuralSchema>> | undefined;
  readonly additionalProperties?: StructuralSchema | boolean | undefined;
  readonly required?: readonly string[] | undefined;
  readonly "x-kubernetes-int-or-string"?: boolean | undefined;
  readonly "x-kubernetes-preserve-unknown-fields"?: boolean | undefined;
  readonly "x-kubernetes-embedded-resource"?: boolean | undefined;
}

export const structuralSchema: z.ZodType<StructuralSchema> = z.lazy(() =>
  z.object({
    description: z.string().optional(),
    type: z.string().optional(),
    enum: z.array(z.union([z.string(), z.number(), z.boolean(), z.null()])).optional(),
    nullable: z.boolean().optional(),
    items: structuralSchema.optional(),
    properties: z.record(z.string(), structuralSchema).optional(),
    additionalProperties: z.union([z.boolean(), structuralSchema]).optional(),
    required: z.array(z.string()).optional(),
    "x-kubernetes-int-or-string": z.boolean().optional(),
    "x-kubernetes-preserve-unknown-fields": z.boolean().optional(),
    "x-kubernetes-embedded-resource": z.boolean().optional(),
  }),
);
