// Made from function.yaml by `watchfire types`, and by `watchfire dev` when it changes: change that.
import type * as sdk from "@watchfire/sdk";

type Kind = sdk.ObjectOf<"example.com/v1", "Greeting">;

type Env = Record<never, string>;
type Reads = never;

export type Context = sdk.Context<Env, sdk.CacheOf<Reads>>;
export type Run = sdk.Reconciliation<Kind>;
export type Reconciler = sdk.Reconciler<Kind, Context>;
