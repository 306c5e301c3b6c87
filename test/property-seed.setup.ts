// Properties use the same cases in each run, so that a commit which passed passes again. PROPERTY_SEED=random draws others.
import fc from "fast-check";

const { PROPERTY_SEED: asked = "20261122" } = process.env;
if (asked !== "random") fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(asked) });
