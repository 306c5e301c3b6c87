// Made from function.yaml by `watchfire types`, and by `watchfire dev` when it changes: change that.
import type * as sdk from "@watchfire/sdk";

type Triggers = sdk.Triggers<{
  readonly warnings: sdk.ObjectOf<"v1", "Event">;
}>;

type Env = {
  readonly NOTIFIER_URL?: string;
};
type Reads = never;

export type Context = sdk.Context<Env, sdk.CacheOf<Reads>>;
export type Event = sdk.EventOf<Triggers>;
export type Handler = sdk.Handler<Triggers, Context>;
