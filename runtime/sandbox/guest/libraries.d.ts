// What the guest uses of libraries that bring no types Node's resolution finds.

declare module "event-target-shim" {
  export class Event<Type extends string = string> {
    constructor(type: Type);
    readonly type: Type;
  }
  export class EventTarget {
    addEventListener(type: string, listener: (event: Event) => void, options?: { once?: boolean }): void;
    removeEventListener(type: string, listener: (event: Event) => void): void;
    dispatchEvent(event: Event): boolean;
  }
}

declare module "whatwg-url" {
  export const URL: unknown;
  export const URLSearchParams: unknown;
}
